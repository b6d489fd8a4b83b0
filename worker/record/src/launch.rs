//! A launch as a file: JSON, with the numbers that a kernel was launched with.

use serde::{Deserialize, Serialize};

/// One kernel, launched in one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// The module, as a path in the record.
    pub module: String,
    /// The name of the kernel.
    pub entry: String,
    /// CTAs of the grid.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster, if the launch says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Attributes of the launch and of the function, by number, `cooperative` and `programmatic` by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
    /// It is a node of a graph.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graph: bool,
    /// The parameters in their order.
    pub params: Vec<Param>,
    /// Why parameters are not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Param {
    /// Its size in bytes.
    pub size: u32,
    /// Its bytes in hexadecimal, the first one first; those of pointers are zero. None if they could not be read.
    pub bytes: Option<String>,
    /// The words of it that point into allocated memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<Pointer>,
    /// The tensor maps in it; their bytes are zero.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Map>,
}

/// A word of a parameter that points into allocated memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pointer {
    /// Its first byte in the parameter.
    pub at: u32,
    /// The allocation: words with one number point into one allocation. The number is that of the first parameter that is such a
    /// pointer, or one that no parameter has.
    pub memory: u16,
    /// How far behind the lowest of these words it points.
    pub offset: u64,
}

/// A tensor map in a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Map {
    /// Its first byte in the parameter.
    pub at: u32,
    /// What it was made from; none if that was not seen.
    pub encode: Option<Encode>,
    /// The allocation that it is about, as a pointer there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Pointer>,
}

/// The arguments from which a tensor map was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Encode {
    /// `tiled`, `im2col` or `im2col-wide`.
    pub mode: String,
    /// The type of the elements, by its number in `CUtensorMapDataType`.
    pub element: u32,
    /// Elements along each dimension.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the first.
    pub strides: Vec<u64>,
    /// Elements of a box along each dimension; of im2col: corners, channels and pixels.
    #[serde(rename = "box")]
    pub boxes: Vec<i64>,
    /// Strides of a box.
    pub steps: Vec<u32>,
    /// Interleave, swizzle, promotion to L2, and what is read outside, by their numbers.
    pub words: [u32; 4],
    /// The address of the tensor; not written.
    #[serde(skip)]
    pub address: u64,
}

impl Launch {
    /// Reads a file of a record.
    ///
    /// # Errors
    /// It is no launch.
    pub fn read(text: &str) -> Result<Launch, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// The file of a record.
    pub fn write(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

impl Param {
    /// The bytes, if they were read and are as many as the size says.
    pub fn content(&self) -> Option<Vec<u8>> {
        let text = self.bytes.as_deref()?.as_bytes();
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let out: Option<Vec<u8>> =
            text.chunks(2).map(|p| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?)).collect();
        out.filter(|all| u32::try_from(all.len()) == Ok(self.size))
    }

    /// Writes bytes in hexadecimal.
    pub fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_read_as_it_was_written() {
        let param = Param { size: 2, bytes: Some(Param::hex(&[0, 255])), ..Param::default() };
        let launch = Launch {
            entry: "k".into(),
            cluster: Some([2, 1, 1]),
            params: vec![param, Param::default()],
            ..Launch::default()
        };
        let back = Launch::read(&launch.write()).unwrap();
        assert_eq!(back, launch);
        assert_eq!(back.params[0].content(), Some(vec![0, 255]));
        assert_eq!(Param { size: 1, bytes: Some("0".into()), ..Param::default() }.content(), None);
        assert!(Launch::read("[]").is_err());
    }
}
