//! One box of a chain: its members are called inlined, block by block over memory that stays in the first-level cache.

use crate::kernel::Token;
use crate::{In, Out, Outcome, Primitive};

/// Bytes between two members: a quarter of a first-level cache of 32 KiB, since the block before and the one behind want room too.
const BLOCK_BYTES: usize = 8 << 10;

/// Two boxes of one input and one output each as one. Answers other than [`Outcome::Done`] end the apply.
pub struct Fused<A, B, T> {
    first: A,
    second: B,
    between: Vec<T>,
    /// Tokens of an iteration: taken by the first, and given by it.
    takes: usize,
    middle: usize,
}

impl<A, B, T: Token> Fused<A, B, T> {
    /// `rates`: tokens that an iteration takes, and hands on.
    pub fn new(first: A, second: B, rates: [u32; 2], empty: T) -> Self {
        let [takes, middle] = rates.map(|r| r as usize);
        let iterations = (BLOCK_BYTES / (middle * size_of::<T>())).max(1);
        Self { first, second, between: vec![empty; iterations * middle], takes, middle }
    }

    /// Iterations that fit between both at once.
    pub fn iterations(&self) -> usize {
        self.between.len() / self.middle
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

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "members that are called are not fused")]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        // A division takes longer than a box that does little.
        let is_even = self.takes == self.middle;
        let n = if is_even { x.len() } else { x.len() / self.takes * self.middle };
        let between = &mut self.between[..n];
        match self.first.apply((x, between)) {
            Outcome::Done => self.second.apply((between, y)),
            other => other,
        }
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

/// A chain, block by block.
pub struct Blocks<F> {
    chain: F,
    takes: usize,
    gives: usize,
}

impl<F> Blocks<F> {
    /// `rates`: tokens that an iteration takes and gives.
    pub fn new(chain: F, rates: [u32; 2], iterations: usize) -> Self {
        let [takes, gives] = rates.map(|r| iterations.saturating_mul(r as usize));
        Self { chain, takes, gives }
    }
}

impl<F, X, Y> Primitive for Blocks<F>
where
    X: Token,
    Y: Token,
    F: Primitive<Ports = (In<X>, Out<Y>)>,
{
    type Ports = (In<X>, Out<Y>);

    #[inline]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        // Lengths known to be one make straight code of the members.
        if let ([x], [y]) = (x, &mut *y) {
            return self.chain.apply((std::slice::from_ref(x), std::slice::from_mut(y)));
        }
        let (mut x, mut y) = (x, y);
        loop {
            let (now, later) = x.split_at(x.len().min(self.takes));
            let (given, rest) = y.split_at_mut(y.len().min(self.gives));
            let outcome = self.chain.apply((now, given));
            if outcome != Outcome::Done || later.is_empty() {
                return outcome;
            }
            (x, y) = (later, rest);
        }
    }

    fn reset(&mut self) {
        self.chain.reset();
    }

    fn eos(&mut self, _ports: (&[X], &mut [Y])) {
        self.chain.eos((&[], &mut []));
    }

    fn destroy(&mut self) {
        self.chain.destroy();
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
            let (mut iterations, last) = (usize::MAX, gives[gives.len() - 1]);
            let fused = $crate::chain!(@fuse iterations, $empty, $takes, $($member; $gives),+);
            let blocks = $crate::Blocks::new(fused, [$takes, last], iterations);
            $g.add_members(&members.join("+"), blocks, ($x.input($takes), $y.output(last)), members.len());
        } else {
            $crate::chain!(@add $g, $x, $takes, $y, $($name $member; $gives),+);
        }
    };
    (@fuse $most:ident, $empty:expr, $takes:expr, $first:expr; $gives:expr) => { $first };
    (@fuse $most:ident, $empty:expr, $takes:expr, $first:expr; $middle:expr, $second:expr; $gives:expr $(, $($rest:tt)+)?) => {{
        let fused = $crate::Fused::new($first, $second, [$takes, $middle], $empty);
        $most = usize::min($most, fused.iterations());
        $crate::chain!(@fuse $most, $empty, $takes, fused; $gives $(, $($rest)+)?)
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
