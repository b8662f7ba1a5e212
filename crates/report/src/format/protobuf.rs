//! Writes the protocol buffer wire format: varints, doubles and length-delimited fields, all that the exporters use.

#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Field of an unsigned integer, a bool or an enum.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    pub(super) fn double(mut self, field: u32, value: f64) -> Self {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_encoding_guide() {
        // Examples of the protocol buffers encoding guide: a = 150; b = "testing"; c = { a = 150 }.
        let a = Message::default().number(1, 150);
        assert_eq!(a.as_bytes(), [0x08, 0x96, 0x01]);
        let b = Message::default().text(2, "testing");
        assert_eq!(b.as_bytes(), [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let c = Message::default().message(3, &a);
        assert_eq!(c.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
