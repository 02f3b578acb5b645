//! Names of objects that are made of others.

/// As many characters of a name as leave room for more; without what no name may end in.
pub(crate) fn beginning(name: &str, most: usize) -> &str {
    let end = name.char_indices().nth(most).map_or(name.len(), |(end, _)| end);
    name.get(..end).unwrap_or(name).trim_end_matches(['.', '-'])
}
