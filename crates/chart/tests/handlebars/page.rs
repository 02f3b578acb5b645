//! docs/handlebars.md: the two columns of its tables make the same.

use std::path::Path;

use super::{CHART, notes_of};

#[test]
fn the_page_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/handlebars.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, values) = page.split_once("# values.yaml of the examples below\n").unwrap();
    let (values, _) = values.split_once("```").unwrap();
    let mut rows = 0;
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let row = row.replace("\\|", "\u{1}");
        let cells: Vec<_> = row.split('|').map(|cell| cell.replace('\u{1}', "|")).collect();
        let code = |at: usize| cells[at].trim().trim_matches('`').to_owned();
        let make = |name, text: &str| notes_of(CHART, values, name, text, &[]);
        let (handlebars, go) = (code(1), code(2));
        let expected = make("templates/NOTES.txt", &go).unwrap();
        assert_eq!(make("templates/NOTES.txt.hbs", &handlebars), Ok(expected), "{handlebars}");
        rows += 1;
    }
    assert!(rows > 20, "{rows} rows");
}
