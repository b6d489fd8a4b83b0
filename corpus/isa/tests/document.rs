//! The page of the documentation says what the entries say.

#[test]
fn the_page_is_made_of_the_entries() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/guide/instructions.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let anew = "cargo run -p moire-isa --example document > deploy/guide/instructions.md";
    assert!(text == moire_isa::page(), "the page is old: {anew}");
}
