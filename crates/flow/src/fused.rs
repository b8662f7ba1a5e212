//! One box of a chain: its members are called inlined, block by block over memory that stays in the first-level cache.

use crate::kernel::{In, Out, Token};
use crate::{Outcome, Primitive};

/// Bytes between two members: a quarter of a first-level cache of 32 KiB, since the block before and the one behind want room too.
const BLOCK_BYTES: usize = 8 << 10;

/// Two boxes of one input and one output each as one. Members answer [`Outcome::Done`]; other answers end the apply.
pub struct Fused<A, B, T> {
    first: A,
    second: B,
    between: Vec<T>,
    /// Tokens of an iteration: taken by the first, given by it, given by the second.
    takes: usize,
    middle: usize,
    gives: usize,
}

impl<A, B, T: Token> Fused<A, B, T> {
    /// `rates`: tokens that an iteration of both takes, hands on and gives.
    pub fn new(first: A, second: B, rates: [u32; 3], empty: T) -> Self {
        let [takes, middle, gives] = rates.map(|r| r as usize);
        let iterations = (BLOCK_BYTES / (middle * size_of::<T>())).max(1);
        Self { first, second, between: vec![empty; iterations * middle], takes, middle, gives }
    }
}

impl<A, B, X, T, Y> Primitive for Fused<A, B, T>
where
    X: Token,
    T: Token,
    Y: Token,
    A: Primitive<Ports = (In<X>, Out<T>)>,
    B: Primitive<Ports = (In<T>, Out<Y>)>,
{
    type Ports = (In<X>, Out<Y>);

    #[inline]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        let iterations = self.between.len() / self.middle;
        for (x, y) in x.chunks(iterations * self.takes).zip(y.chunks_mut(iterations * self.gives)) {
            let between = &mut self.between[..x.len() / self.takes * self.middle];
            let outcome = self.first.apply((x, between));
            if outcome != Outcome::Done {
                return outcome;
            }
            let outcome = self.second.apply((between, y));
            if outcome != Outcome::Done {
                return outcome;
            }
        }
        Outcome::Done
    }

    fn reset(&mut self) {
        self.first.reset();
        self.second.reset();
    }
}

/// Adds boxes of one input and one output in a row, one token in and one out a firing: as one box where the graph is fused.
///
/// ```
/// # use machmeter_flow::{Graph, chain, In, Out, Outcome, Primitive};
/// # struct Gain(f32);
/// # impl Primitive for Gain {
/// #     type Ports = (In<f32>, Out<f32>);
/// #     fn apply(&mut self, (x, y): (&[f32], &mut [f32])) -> Outcome {
/// #         x.iter().zip(y).for_each(|(x, y)| *y = self.0 * x);
/// #         Outcome::Done
/// #     }
/// # }
/// let mut g = Graph::new("levels").fused(true);
/// let (x, y) = (g.edge::<f32>("x"), g.edge::<f32>("y"));
/// chain!(g, x => "half" Gain(0.5), "double" Gain(2.0), "same" Gain(1.0) => y, 0.0_f32);
/// assert_eq!(g.box_count(), 3);
/// ```
#[macro_export]
macro_rules! chain {
    ($g:expr, $x:expr => $($name:literal $member:expr),+ => $y:expr, $empty:expr) => {
        if $g.is_fused() {
            let members = [$($name),+];
            let fused = $crate::chain!(@fuse $empty, $($member),+);
            $g.add_members(&members.join("+"), fused, ($x.input(1), $y.output(1)), members.len());
        } else {
            $crate::chain!(@add $g, $x, $y, $($name $member),+);
        }
    };
    (@fuse $empty:expr, $first:expr) => { $first };
    (@fuse $empty:expr, $first:expr, $second:expr $(, $rest:expr)*) => {
        $crate::chain!(@fuse $empty, $crate::Fused::new($first, $second, [1, 1, 1], $empty) $(, $rest)*)
    };
    (@add $g:expr, $x:expr, $y:expr, $name:literal $member:expr) => {
        $g.add($name, $member, ($x.input(1), $y.output(1)));
    };
    (@add $g:expr, $x:expr, $y:expr, $name:literal $member:expr, $($rest:tt)+) => {{
        let next = $g.edge($name);
        $g.add($name, $member, ($x.input(1), next.output(1)));
        $crate::chain!(@add $g, next, $y, $($rest)+);
    }};
}
