//! What the fuzz targets share: limits that are asserted, renderings that are compared, a
//! generator of templates, odd archives.

pub mod archive;
pub mod generate;
pub mod limits;
pub mod rendering;
pub mod yaml;
