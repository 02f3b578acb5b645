//! All functions that templates may call, with what people read about them: one list, from which
//! the reference page (docs/functions.md) and the coverage table are made.

use catamaran_gotemplate::builtins;
pub use catamaran_gotemplate::{Example, Func, Item, Origin, Type};

/// Functions that belong together.
#[derive(Clone, Debug)]
pub struct Family {
    /// What they are about, as a heading.
    pub title: &'static str,
    /// The functions, those that are nearly the same side by side.
    pub items: Vec<&'static Item>,
}

/// All functions by family, as Helm 4.3 has them. (3.18 lacks some.)
pub fn families() -> Vec<Family> {
    let sprig = catamaran_sprig::families();
    let sprig = sprig.map(|family| Family { title: family.title, items: family.items().collect() });
    // Go's `slice` is hidden by Sprig's.
    let hidden = |name| catamaran_sprig::items().any(|item| item.func.name() == name);
    let go = builtins().iter().filter(|item| !hidden(item.func.name())).collect();
    let chart = crate::render::functions::ITEMS.iter().collect();
    let front = [
        Family { title: "Logic, comparison, printing", items: go },
        Family { title: "Templates and the cluster", items: chart },
    ];
    front.into_iter().chain(sprig).collect()
}

/// All functions, each once: name and types of parameters are in [`Item::func`].
///
/// ```
/// let trunc = catamaran_chart::reference::functions().find(|item| item.func.name() == "trunc");
/// assert_eq!(trunc.unwrap().usage, "LENGTH TEXT -> string");
/// ```
pub fn functions() -> impl Iterator<Item = &'static Item> {
    families().into_iter().flat_map(|family| family.items)
}
