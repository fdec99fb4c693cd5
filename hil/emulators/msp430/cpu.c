#include "cpu.h"

#define RETI_CYCLES 5
#define INTERRUPT_CYCLES 6
#define JUMP_CYCLES 2

/* Addressing modes as the cycle tables tell them apart; constants of the generator count as registers. */
enum mode { MODE_REGISTER, MODE_INDIRECT, MODE_AUTOINCREMENT, MODE_INDEXED };

struct operand {
    enum { IN_REGISTER, IN_MEMORY, CONSTANT } place;
    uint16_t at; /* register number, address, or the value itself */
    enum mode mode;
};

static uint16_t fetch(struct cpu *cpu)
{
    const uint16_t word = bus_fetch(cpu->r[PC]);
    cpu->r[PC] = (uint16_t)(cpu->r[PC] + 2);
    return word;
}

static void push(struct cpu *cpu, uint16_t value)
{
    cpu->r[SP] = (uint16_t)(cpu->r[SP] - 2);
    bus_write_word(cpu->r[SP], value);
}

static uint16_t pop(struct cpu *cpu)
{
    const uint16_t value = bus_read_word(cpu->r[SP]);
    cpu->r[SP] = (uint16_t)(cpu->r[SP] + 2);
    return value;
}

/* --- Operands --------------------------------------------------------------------------------------------------------------- */

static struct operand indexed(struct cpu *cpu, unsigned number)
{
    const uint16_t base = number == SR ? 0 : cpu->r[number]; /* &ADDR is indexed by nothing; PC is still at the index itself */
    const uint16_t index = fetch(cpu);
    return (struct operand){IN_MEMORY, (uint16_t)(base + index), MODE_INDEXED};
}

static struct operand source(struct cpu *cpu, unsigned number, unsigned as, bool byte)
{
    static const uint16_t from_cg[] = {0, 1, 2, 0xFFFF};

    if (number == CG) {
        return (struct operand){CONSTANT, from_cg[as], MODE_REGISTER};
    }
    if (number == SR && as >= 2) {
        return (struct operand){CONSTANT, as == 2 ? 4 : 8, MODE_REGISTER};
    }
    if (as == 0) {
        return (struct operand){IN_REGISTER, (uint16_t)number, MODE_REGISTER};
    }
    if (as == 1) {
        return indexed(cpu, number);
    }
    const uint16_t address = cpu->r[number];
    if (as == 2) {
        return (struct operand){IN_MEMORY, address, MODE_INDIRECT};
    }
    const unsigned size = byte && number != PC && number != SP ? 1 : 2; /* PC and SP stay even */
    cpu->r[number] = (uint16_t)(address + size);
    return (struct operand){IN_MEMORY, address, MODE_AUTOINCREMENT};
}

static struct operand destination(struct cpu *cpu, unsigned number, bool ad)
{
    return ad ? indexed(cpu, number) : (struct operand){IN_REGISTER, (uint16_t)number, MODE_REGISTER};
}

static uint16_t get(const struct cpu *cpu, struct operand operand, bool byte)
{
    uint16_t value = operand.at;
    if (operand.place == IN_REGISTER) {
        value = operand.at == CG ? 0 : cpu->r[operand.at];
    } else if (operand.place == IN_MEMORY) {
        value = byte ? bus_read_byte(operand.at) : bus_read_word(operand.at);
    }
    return byte ? value & 0xFF : value;
}

static void put(struct cpu *cpu, struct operand operand, bool byte, uint16_t value)
{
    if (operand.place == IN_MEMORY) {
        if (byte) {
            bus_write_byte(operand.at, (uint8_t)value);
        } else {
            bus_write_word(operand.at, value);
        }
    } else if (operand.place == IN_REGISTER && operand.at != CG) {
        /* the result of a byte operation has no upper half, and clears that of the register */
        cpu->r[operand.at] = operand.at == PC || operand.at == SP ? value & 0xFFFE : value;
    }
}

/* --- Flags ------------------------------------------------------------------------------------------------------------------ */

static void set_flag(struct cpu *cpu, uint16_t flag, bool on)
{
    cpu->r[SR] = (uint16_t)(on ? cpu->r[SR] | flag : cpu->r[SR] & ~flag);
}

static bool flag(const struct cpu *cpu, uint16_t mask)
{
    return (cpu->r[SR] & mask) != 0;
}

static void set_flags(struct cpu *cpu, uint32_t result, bool byte, bool carry, bool overflow)
{
    set_flag(cpu, FLAG_N, (result & (byte ? 0x80u : 0x8000u)) != 0);
    set_flag(cpu, FLAG_Z, (result & (byte ? 0xFFu : 0xFFFFu)) == 0);
    set_flag(cpu, FLAG_C, carry);
    set_flag(cpu, FLAG_V, overflow);
}

/* --- Two operands ----------------------------------------------------------------------------------------------------------- */

enum { MOV = 4, ADD, ADDC, SUBC, SUB, CMP, DADD, BIT, BIC, BIS, XOR, AND };

static uint32_t add(struct cpu *cpu, uint32_t a, uint32_t b, bool carry, bool byte)
{
    const uint32_t most = byte ? 0xFF : 0xFFFF, sign = byte ? 0x80 : 0x8000;
    const uint32_t sum = a + b + carry;
    set_flags(cpu, sum, byte, sum > most, (~(a ^ b) & (a ^ sum) & sign) != 0);
    return sum & most;
}

/* V is undefined after it (SLAU144, DADD) and left alone. */
static uint32_t add_decimal(struct cpu *cpu, uint32_t a, uint32_t b, bool byte)
{
    const unsigned bits = byte ? 8 : 16;
    uint32_t sum = 0;
    uint32_t carry = flag(cpu, FLAG_C);

    for (unsigned digit = 0; digit < bits; digit += 4) {
        uint32_t part = (a >> digit & 0xF) + (b >> digit & 0xF) + carry;
        carry = part > 9;
        part -= carry ? 10 : 0;
        sum |= (part & 0xF) << digit;
    }
    set_flags(cpu, sum, byte, carry != 0, flag(cpu, FLAG_V));
    return sum;
}

static uint32_t and_bits(struct cpu *cpu, uint32_t a, uint32_t b, bool byte)
{
    const uint32_t result = a & b;
    set_flags(cpu, result, byte, result != 0, false);
    return result;
}

static uint32_t exclusive_or(struct cpu *cpu, uint32_t a, uint32_t b, bool byte)
{
    const uint32_t result = a ^ b;
    set_flags(cpu, result, byte, result != 0, (a & b & (byte ? 0x80u : 0x8000u)) != 0);
    return result;
}

static unsigned two_operands(struct cpu *cpu, uint16_t word)
{
    static const uint8_t to_register[] = {1, 2, 2, 3}, to_pc[] = {2, 2, 3, 3}, to_memory[] = {4, 5, 5, 6}; /* SLAU144, table 3-16 */
    const unsigned operation = word >> 12;
    const bool byte = (word & 0x40) != 0;
    const uint32_t mask = byte ? 0xFF : 0xFFFF;

    const struct operand from = source(cpu, word >> 8 & 0xF, word >> 4 & 3, byte);
    const uint32_t a = get(cpu, from, byte);
    const struct operand to = destination(cpu, word & 0xF, (word & 0x80) != 0);
    const uint32_t b = operation == MOV ? 0 : get(cpu, to, byte); /* MOV does not read where it writes */
    uint32_t result = 0;

    switch (operation) {
    case MOV: result = a; break;
    case ADD: result = add(cpu, b, a, false, byte); break;
    case ADDC: result = add(cpu, b, a, flag(cpu, FLAG_C), byte); break;
    case SUBC: result = add(cpu, b, ~a & mask, flag(cpu, FLAG_C), byte); break;
    case SUB:
    case CMP: result = add(cpu, b, ~a & mask, true, byte); break;
    case DADD: result = add_decimal(cpu, a, b, byte); break;
    case BIT:
    case AND: result = and_bits(cpu, a, b, byte); break;
    case BIC: result = b & ~a & mask; break;
    case BIS: result = b | a; break;
    case XOR: result = exclusive_or(cpu, a, b, byte); break;
    default: cpu->illegal = true; break;
    }
    if (operation != CMP && operation != BIT) {
        put(cpu, to, byte, (uint16_t)result);
    }
    return to.place == IN_MEMORY ? to_memory[from.mode] : to.at == PC ? to_pc[from.mode] : to_register[from.mode];
}

/* --- One operand ------------------------------------------------------------------------------------------------------------ */

enum { RRC, SWPB, RRA, SXT, PUSH, CALL, RETI };

static unsigned one_operand(struct cpu *cpu, uint16_t word)
{
    static const uint8_t in_place[] = {1, 3, 3, 4}, pushes[] = {3, 4, 5, 5}, calls[] = {4, 4, 5, 5}; /* SLAU144, table 3-15 */
    const unsigned operation = word >> 7 & 7;
    const bool byte = (word & 0x40) != 0;
    const uint16_t sign = byte ? 0x80 : 0x8000;

    if (operation == RETI) {
        cpu->r[SR] = pop(cpu);
        cpu->r[PC] = pop(cpu) & 0xFFFE;
        return RETI_CYCLES;
    }
    if (operation > RETI || (byte && (operation == SWPB || operation == SXT || operation == CALL))) {
        cpu->illegal = true;
        return 1;
    }
    const struct operand operand = source(cpu, word & 0xF, word >> 4 & 3, byte);
    const uint16_t value = get(cpu, operand, byte);
    uint16_t result;

    switch (operation) {
    case PUSH:
        cpu->r[SP] = (uint16_t)(cpu->r[SP] - 2);
        put(cpu, (struct operand){IN_MEMORY, cpu->r[SP], MODE_INDIRECT}, byte, value);
        return operand.mode == MODE_AUTOINCREMENT && (word & 0xF) == PC ? 4 : pushes[operand.mode];
    case CALL:
        push(cpu, cpu->r[PC]);
        cpu->r[PC] = value & 0xFFFE;
        return calls[operand.mode];
    case SWPB:
        result = (uint16_t)(value >> 8 | value << 8);
        break;
    case SXT:
        result = (uint16_t)(int16_t)(int8_t)value;
        set_flags(cpu, result, false, result != 0, false);
        break;
    default: /* RRC and RRA differ in what comes in from the left */
        result = (uint16_t)(value >> 1 | ((operation == RRC ? flag(cpu, FLAG_C) : (value & sign) != 0) ? sign : 0));
        set_flags(cpu, result, byte, (value & 1) != 0, false);
        break;
    }
    put(cpu, operand, byte, result);
    return in_place[operand.mode];
}

/* --- Jumps ------------------------------------------------------------------------------------------------------------------ */

static bool taken(const struct cpu *cpu, unsigned condition)
{
    const bool less = flag(cpu, FLAG_N) != flag(cpu, FLAG_V);
    switch (condition) {
    case 0: return !flag(cpu, FLAG_Z); /* JNE */
    case 1: return flag(cpu, FLAG_Z);  /* JEQ */
    case 2: return !flag(cpu, FLAG_C); /* JNC */
    case 3: return flag(cpu, FLAG_C);  /* JC */
    case 4: return flag(cpu, FLAG_N);  /* JN */
    case 5: return !less;              /* JGE */
    case 6: return less;               /* JL */
    default: return true;              /* JMP */
    }
}

static unsigned jump(struct cpu *cpu, uint16_t word)
{
    const unsigned words = word & 0x3FF;
    const unsigned distance = 2 * (words < 0x200 ? words : words - 0x400); /* ten bits, signed */
    if (taken(cpu, word >> 10 & 7)) {
        cpu->r[PC] = (uint16_t)(cpu->r[PC] + distance);
    }
    return JUMP_CYCLES;
}

/* --- All of it -------------------------------------------------------------------------------------------------------------- */

void cpu_reset(struct cpu *cpu, uint16_t start)
{
    cpu->r[PC] = start & 0xFFFE;
    cpu->r[SR] = 0;
    cpu->illegal = false;
}

unsigned cpu_step(struct cpu *cpu)
{
    cpu->instruction = cpu->r[PC];
    const uint16_t word = fetch(cpu);
    if (word >= 0x4000) {
        return two_operands(cpu, word);
    }
    if (word >= 0x2000) {
        return jump(cpu, word);
    }
    if (word >= 0x1000 && word < 0x1400) {
        return one_operand(cpu, word);
    }
    cpu->illegal = true;
    return 1;
}

unsigned cpu_interrupt(struct cpu *cpu, uint16_t vector)
{
    push(cpu, cpu->r[PC]);
    push(cpu, cpu->r[SR]);
    cpu->r[SR] &= SCG0;
    cpu->r[PC] = bus_read_word(vector) & 0xFFFE;
    return INTERRUPT_CYCLES;
}
