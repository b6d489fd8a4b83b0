//! Pieces of an exploration: stretches of the leaves of the tree of decisions, in the order in which they are visited.
//!
//! The tree is a function of the program and the model, and so is the order of its leaves: alternatives have numbers, and
//! the lower number comes first. A search that is asked for a part of its piece ([`Giver`]) finds the shallowest node of its
//! path behind which something may be left. It gives away everything behind that node, and its own piece ends there: one
//! stretch becomes two. So every leaf is visited once. Which search visits it is a matter of chance; the total is not.

/// A stretch of the leaves of a tree of decisions, in the order in which they are visited. A node stands for the
/// decisions that lead to it, and for all leaves under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Leaves up to and with those of this node are not in the piece; empty: it starts with the first leaf.
    pub behind: Vec<u32>,
    /// Leaves behind those of this node are not in the piece; empty, which is the root: it ends with the last leaf.
    pub until: Vec<u32>,
}

impl Piece {
    /// All leaves of a node.
    pub fn of(node: &[u32]) -> Piece {
        Piece { behind: before(node), until: node.to_vec() }
    }

    /// Whether leaves of the node that `choice` leads to behind `path`, of which leaves are in the piece, are in it too.
    fn takes(&self, path: &[u32], choice: u32) -> bool {
        let depth = path.len();
        let late = match self.behind.get(depth) {
            Some(first) if self.behind[..depth] == *path => match depth + 1 == self.behind.len() {
                true => choice > *first,
                false => choice >= *first,
            },
            _ => true,
        };
        let early = match self.until.get(depth) {
            Some(last) if self.until[..depth] == *path => choice <= *last,
            _ => true,
        };
        late && early
    }
}

/// The last node whose leaves come before those of `node`, or a node above it that ends with the same leaf; empty where
/// nothing comes before.
fn before(node: &[u32]) -> Vec<u32> {
    let depth = node.iter().rposition(|choice| *choice > 0);
    let mut out = depth.map_or_else(Vec::new, |depth| node[..=depth].to_vec());
    out.last_mut().into_iter().for_each(|choice| *choice -= 1);
    out
}

/// Who takes what an exploration gives away.
pub trait Giver: Sync {
    /// Whether another search waits for work; asked at every decision.
    fn wanted(&self) -> bool;
    /// Hands over a piece; false: there is nothing in it, and another one is wanted.
    fn give(&self, piece: Piece) -> bool;
    /// Whether [`crate::Visitor::reached`] is to be told how far this is; asked at every decision.
    fn due(&self) -> bool {
        false
    }
    /// Another piece for a search that has finished one; may wait for it.
    fn next(&self) -> Option<Piece> {
        None
    }
}

/// What is still to be visited of a piece by one search, while it visits it.
pub(crate) struct Share<'a> {
    piece: Piece,
    giver: Option<&'a dyn Giver>,
    /// Decisions before this one have no alternative left for this search.
    own: usize,
}

impl<'a> Share<'a> {
    pub(crate) fn new(piece: &Piece, giver: Option<&'a dyn Giver>) -> Self {
        Share { piece: piece.clone(), giver, own: 0 }
    }

    /// Whether this alternative behind `path` is this search's to visit.
    pub(crate) fn takes(&self, path: &[u32], choice: u32) -> bool {
        self.piece.takes(path, choice)
    }

    /// Where [`crate::Visitor::reached`] is due: the node up to which all is done when `path` has just been taken.
    pub(crate) fn due(&self, path: &[u32]) -> Option<Vec<u32>> {
        // On the way to the first leaf of the piece nothing is done yet.
        let on_the_way = || self.piece.behind.starts_with(path);
        (self.giver.is_some_and(Giver::due) && !on_the_way()).then(|| before(path))
    }

    /// If another search waits, gives away what is left at the shallowest node of `path` at which something may be left.
    pub(crate) fn give(&mut self, path: &[u32]) {
        let Some(giver) = self.giver.filter(|g| g.wanted()) else { return };
        // The decision made just now is this search's to finish.
        while self.own + 1 < path.len() {
            let node = &path[..=self.own];
            self.own += 1;
            if self.piece.until.starts_with(node) {
                continue;
            }
            let given = Piece { behind: node.to_vec(), until: self.piece.until.clone() };
            if giver.give(given) {
                self.piece.until = node.to_vec();
                return;
            }
        }
    }
}
