//! Instructions of x86-64.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::LONGEST_BYTES;
use super::body::{Access, Flow, Registers, Step, Store, function};
use crate::kernel::Code;

const INSTRUCTION_BYTES: usize = 15;

pub(super) fn read(code: Code) -> Result<Vec<Step>, String> {
    let start = code as *const u8;
    let mut info = InstructionInfoFactory::new();
    function(LONGEST_BYTES, |at| {
        // SAFETY: the offsets asked for lie in the function, one instruction after the other up to its return.
        let here = unsafe { start.add(at) };
        // SAFETY: code is mapped and readable, and kernels are followed by more bytes than an instruction has (see `looped`);
        // nobody writes to code.
        let bytes = unsafe { &*here.cast::<[u8; INSTRUCTION_BYTES]>() };
        step(bytes, at as i64, &mut info)
    })
}

fn step(bytes: &[u8; INSTRUCTION_BYTES], at: i64, info: &mut InstructionInfoFactory) -> Result<Step, String> {
    let instruction = Decoder::with_ip(64, bytes, at as u64, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return Err(format!("no instruction at byte {at}"));
    }
    let flow = match instruction.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
            Flow::Branch(instruction.near_branch_target() as i64)
        }
        FlowControl::Return => Flow::Return,
        FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
        other => return Err(format!("{other:?} at byte {at}")),
    };
    let used = info.info(&instruction);
    let (mut reads, mut writes) = (0, 0);
    for register in used.used_registers() {
        let bit = bit(register.register());
        let (read, written) = read_written(register.access());
        reads |= if read { bit } else { 0 };
        writes |= if written { bit } else { 0 };
    }
    let repeats = instruction.has_rep_prefix() && instruction.is_string_instruction();
    let way = if streams(instruction.mnemonic()) { Store::Streaming } else { Store::Ordinary };
    let accesses = used.used_memory().iter().filter_map(|memory| {
        let (load, store) = read_written(memory.access());
        let base = memory.base().full_register();
        let displacement = memory.displacement() as i64;
        (load || store).then(|| Access {
            base: bit(base),
            indexed: memory.index() != Register::None,
            displacement,
            // Of an instruction that repeats itself, the size of the whole is not known to the decoder.
            bytes: if repeats { instruction.memory_size() } else { memory.memory_size() }.size() as u32,
            load,
            store: store.then_some(way),
            // Frames are addressed downwards from rbp, pointers kept there are not.
            stack: base == Register::RSP || (base == Register::RBP && displacement < 0),
        })
    });
    Ok(Step {
        at,
        length: instruction.len() as u8,
        flow,
        accesses: accesses.collect(),
        reads,
        writes,
        flops: flops(&instruction),
        advance: advance(&instruction),
        constant: constant(&instruction),
        repeated_by: repeats.then(|| bit(Register::RCX)),
    })
}

fn read_written(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

/// General registers are bits 0 to 15, vector registers 16 to 47; others (flags, masks) are not followed.
fn bit(register: Register) -> Registers {
    let full = register.full_register();
    if full.is_gpr64() {
        1 << full.number()
    } else if full.is_vector_register() {
        1 << (16 + full.number())
    } else {
        0
    }
}

fn streams(mnemonic: Mnemonic) -> bool {
    format!("{mnemonic:?}").to_lowercase().contains("movnt")
}

fn flops(instruction: &Instruction) -> u32 {
    let lanes = (instruction.op0_register().size() / size_of::<f64>()) as u32;
    match instruction.mnemonic() {
        Mnemonic::Addsd | Mnemonic::Mulsd | Mnemonic::Vaddsd | Mnemonic::Vmulsd => 1,
        Mnemonic::Addpd | Mnemonic::Mulpd | Mnemonic::Vaddpd | Mnemonic::Vmulpd => lanes,
        Mnemonic::Vfmadd132sd | Mnemonic::Vfmadd213sd | Mnemonic::Vfmadd231sd => 2,
        Mnemonic::Vfmadd132pd | Mnemonic::Vfmadd213pd | Mnemonic::Vfmadd231pd => 2 * lanes,
        _ => 0,
    }
}

fn immediate(instruction: &Instruction) -> Option<u64> {
    let to_register = instruction.op_count() == 2 && instruction.op0_kind() == OpKind::Register;
    to_register.then(|| instruction.try_immediate(1).ok())?
}

fn advance(instruction: &Instruction) -> Option<(Registers, i64)> {
    let bytes = immediate(instruction)? as i64;
    match instruction.mnemonic() {
        Mnemonic::Add => Some((bit(instruction.op0_register()), bytes)),
        Mnemonic::Sub => Some((bit(instruction.op0_register()), -bytes)),
        _ => None,
    }
}

fn constant(instruction: &Instruction) -> Option<(Registers, u64)> {
    let value = immediate(instruction)?;
    (instruction.mnemonic() == Mnemonic::Mov).then(|| (bit(instruction.op0_register()), value))
}
