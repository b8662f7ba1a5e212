//! One box of a chain: its members are called inlined, block by block over memory that stays in the first-level cache.

use crate::kernel::Token;
use crate::{In, Out, Outcome, Primitive};

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

    fn eos(&mut self, _ports: (&[X], &mut [Y])) {
        self.first.eos((&[], &mut []));
        self.second.eos((&[], &mut []));
    }

    fn destroy(&mut self) {
        self.first.destroy();
        self.second.destroy();
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
///
/// Other rates are said after semicolons: tokens that the first member takes a firing, and what each gives.
/// The next one takes what the last one gives: `chain!(g, x; 4 => "pairs" Pairs; 2, "sum" Sum; 1 => y, 0.0)`.
#[macro_export]
macro_rules! chain {
    ($g:expr, $x:expr => $($name:literal $member:expr),+ => $y:expr, $empty:expr) => {
        $crate::chain!($g, $x; 1 => $($name $member; 1),+ => $y, $empty);
    };
    ($g:expr, $x:expr; $takes:expr => $($name:literal $member:expr; $gives:expr),+ => $y:expr, $empty:expr) => {
        if $g.is_fused() {
            let (members, gives) = ([$($name),+], [$($gives),+]);
            let fused = $crate::chain!(@fuse $empty, $takes, $($member; $gives),+);
            let ports = ($x.input($takes), $y.output(gives[gives.len() - 1]));
            $g.add_members(&members.join("+"), fused, ports, members.len());
        } else {
            $crate::chain!(@add $g, $x, $takes, $y, $($name $member; $gives),+);
        }
    };
    (@fuse $empty:expr, $takes:expr, $first:expr; $gives:expr) => { $first };
    (@fuse $empty:expr, $takes:expr, $first:expr; $middle:expr, $second:expr; $gives:expr $(, $($rest:tt)+)?) => {{
        let fused = $crate::Fused::new($first, $second, [$takes, $middle, $gives], $empty);
        $crate::chain!(@fuse $empty, $takes, fused; $gives $(, $($rest)+)?)
    }};
    (@add $g:expr, $x:expr, $takes:expr, $y:expr, $name:literal $member:expr; $gives:expr) => {
        $g.add($name, $member, ($x.input($takes), $y.output($gives)));
    };
    (@add $g:expr, $x:expr, $takes:expr, $y:expr, $name:literal $member:expr; $gives:expr, $($rest:tt)+) => {{
        let next = $g.edge($name);
        $g.add($name, $member, ($x.input($takes), next.output($gives)));
        $crate::chain!(@add $g, next, $gives, $y, $($rest)+);
    }};
}
