//! Finds numbers that JSON cannot hold. `serde_json` writes NaN and infinity as `null`, which would turn a wrong figure
//! into a missing one without a reason; this serializer writes nothing and stops at the first such number.

use std::fmt::{self, Display};

use serde::ser::{self, Serialize, Serializer};

/// Where a non-finite number stands, as `metrics[3].ci.low`, with the number.
#[derive(Debug, PartialEq)]
pub(crate) struct NotFinite {
    path: String,
    value: String,
}

impl Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, which a record must not hold", self.path.trim_start_matches('.'), self.value)
    }
}
impl std::error::Error for NotFinite {}
impl ser::Error for NotFinite {
    fn custom<T: Display>(message: T) -> Self {
        Self { path: "record".to_owned(), value: message.to_string() }
    }
}

impl NotFinite {
    fn below(mut self, part: &str) -> Self {
        self.path.insert_str(0, part);
        self
    }
}

/// Checks every number in `value`.
pub(crate) fn check<T: Serialize>(value: &T) -> Result<(), NotFinite> {
    value.serialize(Finite)
}

#[derive(Clone, Copy)]
struct Finite;

/// State of a list, map or structure: the index or key in turn.
struct Within {
    index: usize,
    key: String,
}

fn element<T: ?Sized + Serialize>(w: &mut Within, v: &T) -> Result<(), NotFinite> {
    v.serialize(Finite).map_err(|e| e.below(&format!("[{}]", w.index)))?;
    w.index += 1;
    Ok(())
}

fn field<T: ?Sized + Serialize>(key: &str, v: &T) -> Result<(), NotFinite> {
    v.serialize(Finite).map_err(|e| e.below(&format!(".{key}")))
}

macro_rules! answers {
    ($answer:ty, $value:expr; $($name:ident($($type:ty),*)),*) => {
        $(fn $name(self, $(_: $type),*) -> Result<$answer, NotFinite> { Ok($value) })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Within;
    type SerializeTuple = Within;
    type SerializeTupleStruct = Within;
    type SerializeTupleVariant = Within;
    type SerializeMap = Within;
    type SerializeStruct = Within;
    type SerializeStructVariant = Within;

    answers!((), (); serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32),
        serialize_i64(i64), serialize_i128(i128), serialize_u8(u8), serialize_u16(u16), serialize_u32(u32),
        serialize_u64(u64), serialize_u128(u128), serialize_char(char), serialize_str(&str),
        serialize_bytes(&[u8]), serialize_none(), serialize_unit(), serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str));
    answers!(Within, Within { index: 0, key: String::new() }; serialize_seq(Option<usize>), serialize_tuple(usize),
        serialize_tuple_struct(&'static str, usize), serialize_map(Option<usize>),
        serialize_tuple_variant(&'static str, u32, &'static str, usize), serialize_struct(&'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize));

    fn serialize_f32(self, v: f32) -> Result<(), NotFinite> {
        self.serialize_f64(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Result<(), NotFinite> {
        if v.is_finite() { Ok(()) } else { Err(NotFinite { path: String::new(), value: v.to_string() }) }
    }
    fn serialize_some<T: ?Sized + Serialize>(self, v: &T) -> Result<(), NotFinite> {
        v.serialize(self)
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        v: &T,
    ) -> Result<(), NotFinite> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        v: &T,
    ) -> Result<(), NotFinite> {
        field(variant, v)
    }
}

macro_rules! lists {
    ($($trait:ident $method:ident),*) => { $(
        impl ser::$trait for Within {
            type Ok = ();
            type Error = NotFinite;
            fn $method<T: ?Sized + Serialize>(&mut self, v: &T) -> Result<(), NotFinite> { element(self, v) }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )* };
}
lists!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field);

macro_rules! structures {
    ($($trait:ident),*) => { $(
        impl ser::$trait for Within {
            type Ok = ();
            type Error = NotFinite;
            fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, v: &T) -> Result<(), NotFinite> {
                field(key, v)
            }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )* };
}
structures!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Within {
    type Ok = ();
    type Error = NotFinite;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), NotFinite> {
        self.key = serde_json::to_value(key)
            .ok()
            .and_then(|k| k.as_str().map(str::to_owned))
            .unwrap_or_else(|| "?".to_owned());
        Ok(())
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, v: &T) -> Result<(), NotFinite> {
        v.serialize(Finite).map_err(|e| e.below(&format!("[{:?}]", self.key)))
    }
    fn end(self) -> Result<(), NotFinite> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_path_of_the_bad_number_is_told() {
        let good = BTreeMap::from([("a", vec![Some(1.0), None]), ("b", vec![])]);
        assert_eq!(check(&good), Ok(()));
        let bad = BTreeMap::from([("a", vec![Some(1.0), Some(f64::NAN)])]);
        assert_eq!(check(&bad).unwrap_err().to_string(), "[\"a\"][1] is NaN, which a record must not hold");
        assert!(check(&(1, f64::NEG_INFINITY)).is_err());
        assert!(check(&f32::INFINITY).is_err());
    }
}
