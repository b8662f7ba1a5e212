//! One box of a chain: its members are called inlined, by blocks in the first-level cache, or token by token in registers.

use std::slice::{from_mut, from_ref};

use crate::kernel::Token;
use crate::{In, Out, Outcome, Primitive};

/// Bytes between two members: a quarter of a first-level cache of 32 KiB, since the block before and the one behind want room too.
const BLOCK_BYTES: usize = 8 << 10;

/// What is no firing goes to each member.
macro_rules! tell {
    ($($member:ident),+) => {
        fn reset(&mut self) {
            $(self.$member.reset();)+
        }

        fn eos(&mut self, _ports: (&[X], &mut [Y])) {
            $(self.$member.eos((&[], &mut []));)+
        }

        fn destroy(&mut self) {
            $(self.$member.destroy();)+
        }
    };
}

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

impl<X: Token, T: Token, Y: Token, A, B> Primitive for Fused<A, B, T>
where
    A: Primitive<Ports = (In<X>, Out<T>)>,
    B: Primitive<Ports = (In<T>, Out<Y>)>,
{
    type Ports = (In<X>, Out<Y>);

    #[inline(always)]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        let between = &mut self.between[..x.len() / self.takes * self.middle];
        match self.first.apply((x, between)) {
            Outcome::Done => self.second.apply((between, y)),
            other => other,
        }
    }

    tell!(first, second);
}

/// Two boxes of one token in and one out as one, by value: for applies of one token, which stays in a register.
pub struct ByValue<A, B, T> {
    pub first: A,
    pub second: B,
    /// Never read.
    pub empty: T,
}

impl<X: Token, T: Token, Y: Token, A, B> Primitive for ByValue<A, B, T>
where
    A: Primitive<Ports = (In<X>, Out<T>)>,
    B: Primitive<Ports = (In<T>, Out<Y>)>,
{
    type Ports = (In<X>, Out<Y>);

    #[inline(always)]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        let mut between = self.empty;
        match self.first.apply((x, from_mut(&mut between))) {
            Outcome::Done => self.second.apply((from_ref(&between), y)),
            other => other,
        }
    }

    tell!(first, second);
}

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

impl<X: Token, Y: Token, F: Primitive<Ports = (In<X>, Out<Y>)>> Primitive for Blocks<F> {
    type Ports = (In<X>, Out<Y>);

    #[inline]
    fn apply(&mut self, (mut x, mut y): (&[X], &mut [Y])) -> Outcome {
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

    tell!(chain);
}

/// A chain of [`ByValue`] for any number of tokens. The loop over them is one that compilers turn into vector instructions.
pub struct TokenByToken<F> {
    pub chain: F,
}

impl<X: Token, Y: Token, F: Primitive<Ports = (In<X>, Out<Y>)>> Primitive for TokenByToken<F> {
    type Ports = (In<X>, Out<Y>);

    #[inline]
    fn apply(&mut self, (x, y): (&[X], &mut [Y])) -> Outcome {
        // Straight code for one, without what leads into the loop.
        if let ([x], [y]) = (x, &mut *y) {
            return self.chain.apply((from_ref(x), from_mut(y)));
        }
        for (x, y) in x.iter().zip(y) {
            let outcome = self.chain.apply((from_ref(x), from_mut(y)));
            if outcome != Outcome::Done {
                return outcome;
            }
        }
        Outcome::Done
    }

    tell!(chain);
}

/// Adds boxes of one input and one output in a row, one token in and one out a firing: as one box where the graph is fused.
/// `chain!(g, x => "half" Gain(0.5), "double" Gain(2.0) => y, 0.0_f32)`.
///
/// Tokens are handed on in registers, for members that do little to few tokens; or by blocks of 8 KiB where rates are said, what
/// the first takes a firing and what each gives: `chain!(g, x; 4 => "pairs" Pairs; 2, "sum" Sum; 1 => y, 0.0)`.
#[macro_export]
macro_rules! chain {
    ($g:expr, $x:expr => $($name:literal $member:expr),+ => $y:expr, $empty:expr) => {
        if $g.is_fused() {
            let members = [$($name),+];
            let tiles = $crate::TokenByToken { chain: $crate::chain!(@by_value $empty, $($member),+) };
            $g.add_members(&members.join("+"), tiles, ($x.input(1), $y.output(1)), members.len());
        } else {
            $crate::chain!(@add $g, $x, 1, $y, $($name $member; 1),+);
        }
    };
    (@by_value $empty:expr, $first:expr) => { $first };
    (@by_value $empty:expr, $first:expr, $second:expr $(, $rest:expr)*) => {
        $crate::chain!(@by_value $empty, $crate::ByValue { first: $first, second: $second, empty: $empty } $(, $rest)*)
    };
    ($g:expr, $x:expr; $takes:expr => $($name:literal $member:expr; $gives:expr),+ => $y:expr, $empty:expr) => {
        if $g.is_fused() {
            let (members, gives) = ([$($name),+], [$($gives),+]);
            let (mut most, last) = (usize::MAX, gives[gives.len() - 1]);
            let fused = $crate::chain!(@fuse most, $empty, $takes, $($member; $gives),+);
            let blocks = $crate::Blocks::new(fused, [$takes, last], most);
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
