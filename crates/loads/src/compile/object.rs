//! Third and last stage: from instructions to an object file, and from object files to one image.

use std::collections::HashMap;

/// What an object file begins with.
const MAGIC: &[u8; 8] = b"MMOBJ\0\0\x01";

const OPERATIONS: [&str; 10] = ["add", "and", "arg", "call", "mul", "par", "ret", "set", "sub", "xor"];

/// A function or a call of one: where in the code, and the name.
type Mark = (u32, String);

/// An assembled unit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Object {
    code: Vec<u32>,
    functions: Vec<Mark>,
    calls: Vec<Mark>,
}

impl Object {
    /// Assembles what [`super::translate::translate`] wrote.
    pub(super) fn assemble(text: &str) -> Result<Self, String> {
        let mut object = Self::default();
        for (i, line) in text.lines().enumerate() {
            object.line(line).ok_or_else(|| format!("line {}: '{line}' is no instruction", i + 1))?;
        }
        object.functions.sort_by(|a, b| a.1.cmp(&b.1));
        object.calls.sort_by(|a, b| a.1.cmp(&b.1));
        Ok(object)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        let here = self.code.len() as u32;
        if first == ".function" {
            self.functions.push((here, words.next()?.to_owned()));
            return Some(());
        }
        let operation = OPERATIONS.binary_search(&first).ok()? as u32;
        let operands: Vec<&str> = words.collect();
        self.code.push(operation << 16 | operands.len() as u32);
        for operand in operands {
            let number = |digits: &str| digits.parse::<u64>().ok();
            match operand.as_bytes().first()? {
                b'r' => self.code.push(number(&operand[1..])? as u32),
                b'm' => self.code.push(0x8000_0000 | number(&operand[1..])? as u32),
                b'0'..=b'9' => {
                    let n = number(operand)?;
                    self.code.extend([n as u32, (n >> 32) as u32]);
                }
                _ => {
                    self.calls.push((self.code.len() as u32, operand.to_owned()));
                    self.code.push(0);
                }
            }
        }
        Some(())
    }

    /// The bytes of the file; the last eight are a checksum of the rest.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |n: u32| bytes.extend(n.to_le_bytes());
        for n in [self.code.len(), self.functions.len(), self.calls.len()] {
            put(n as u32);
        }
        self.code.iter().for_each(|c| put(*c));
        for (at, name) in self.functions.iter().chain(&self.calls) {
            bytes.extend(at.to_le_bytes());
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the bytes of a file.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let (rest, sum) = bytes.split_last_chunk::<8>().ok_or("too short")?;
        if checksum(rest) != u64::from_le_bytes(*sum) {
            return Err("damaged");
        }
        let mut rest = rest.strip_prefix(MAGIC).ok_or("no object file")?;
        let mut number = || {
            let (n, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            Some(u32::from_le_bytes(*n))
        };
        let mut counts = [0; 3];
        for count in &mut counts {
            *count = number().ok_or("cut off")?;
        }
        let code: Option<Vec<u32>> = (0..counts[0]).map(|_| number()).collect();
        let mut mark = || {
            let (at, after) = rest.split_first_chunk::<4>()?;
            let (len, after) = after.split_first_chunk::<4>()?;
            let (name, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            rest = after;
            Some((u32::from_le_bytes(*at), std::str::from_utf8(name).ok()?.to_owned()))
        };
        let functions: Option<Vec<Mark>> = (0..counts[1]).map(|_| mark()).collect();
        let calls: Option<Vec<Mark>> = (0..counts[2]).map(|_| mark()).collect();
        match (code, functions, calls) {
            (Some(code), Some(functions), Some(calls)) => Ok(Self { code, functions, calls }),
            _ => Err("cut off"),
        }
    }
}

/// Puts objects behind each other and sets the calls whose functions are among them. Of functions with the same name the
/// first one counts, as for functions from headers. Returns the image and the number of calls that were set.
pub(super) fn link(objects: &[Object]) -> (Vec<u8>, usize) {
    let mut code: Vec<u32> = Vec::new();
    let mut addresses: HashMap<&str, u32> = HashMap::new();
    let mut starts = Vec::new();
    for object in objects {
        let start = code.len() as u32;
        starts.push(start);
        for (at, name) in &object.functions {
            addresses.entry(name).or_insert(start + at);
        }
        code.extend(&object.code);
    }
    let mut set = 0;
    for (object, start) in objects.iter().zip(&starts) {
        for (at, name) in &object.calls {
            if let Some(address) = addresses.get(name.as_str()) {
                code[(start + at) as usize] = *address;
                set += 1;
            }
        }
    }
    let mut index: Vec<(&str, u32)> = addresses.into_iter().collect();
    index.sort_unstable();
    let mut image: Vec<u8> = code.iter().flat_map(|c| c.to_le_bytes()).collect();
    for (name, address) in index {
        image.extend(name.as_bytes());
        image.extend(address.to_le_bytes());
    }
    image.extend(checksum(&image).to_le_bytes());
    (image, set)
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo 1991).
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn objects_come_back_from_their_bytes_and_damage_is_seen() {
        let object =
            Object::assemble(".function f\npar r0 1\nset m2 4294967297\ncall r1 g\nret r1\n").unwrap();
        assert_eq!((object.functions.len(), object.calls.len()), (1, 1));
        let bytes = object.to_bytes();
        assert_eq!(Object::from_bytes(&bytes).unwrap(), object);
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 4;
            assert_eq!(Object::from_bytes(&damaged), Err("damaged"), "byte {i}");
            assert!(Object::from_bytes(&bytes[..i]).is_err());
        }
        assert!(Object::assemble("jump r1\n").unwrap_err().starts_with("line 1: 'jump r1'"));
    }

    #[test]
    fn calls_are_set_to_the_first_function_of_that_name() {
        let a = Object::assemble(".function f\nret r0\n.function h\nret r0\n").unwrap();
        let b = Object::assemble(".function h\nret r0\n.function g\ncall r1 h\ncall r1 f\ncall r1 absent\n");
        let (image, set) = link(&[a, b.unwrap()]);
        assert_eq!(set, 2);
        let word = |i: usize| u32::from_le_bytes(image[4 * i..4 * i + 4].try_into().unwrap());
        // Two words for each ret (operation, operand), three for each call.
        assert_eq!((word(8), word(11), word(14)), (2, 0, 0));
        assert_eq!(image.len() - 8, 15 * 4 + 3 * (1 + 4), "code, and names with addresses");
    }
}
