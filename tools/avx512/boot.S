# Boot sector of the disk that disk.py makes: reads the parts of a Linux kernel from the sectors behind it to where the
# kernel's boot protocol wants them, and jumps into it. Real mode; the BIOS moves what goes above the first MiB.
# SETUP_SECTORS, KERNEL_SECTORS and INITRD_SECTORS come from the assembler's command line.
        .code16
        .globl  _start
_start: cli
        xorw    %ax, %ax
        movw    %ax, %ds
        movw    %ax, %es
        movw    %ax, %ss
        movw    $0x7c00, %sp
        sti
        movb    %dl, drive
        movw    $parts, %bp
part:   movl    (%bp), %ecx                     # sectors left
        movl    4(%bp), %edx                    # where the next one goes
        jecxz   start
read:   movl    %ecx, %eax
        cmpl    $64, %eax
        jbe     1f
        movl    $64, %eax
1:      movw    %ax, count
        pushal
        movb    $0x42, %ah                      # packet -> buffer
        movb    drive, %dl
        movw    $packet, %si
        int     $0x13
        jc      stop
        popal
        pushal
        movl    %edx, target                    # a descriptor: base 0-23, access, -, base 24-31
        movb    $0x93, target + 3
        shrl    $24, %edx
        movb    %dl, target + 5
        movw    %ax, %cx
        shlw    $8, %cx                         # words
        movw    $table, %si
        movb    $0x87, %ah                      # buffer -> target
        int     $0x15
        jc      stop
        popal
        addl    %eax, sector
        subl    %eax, %ecx
        shll    $9, %eax
        addl    %eax, %edx
        testl   %ecx, %ecx
        jnz     read
        addw    $8, %bp
        jmp     part
start:  cli
        movw    $0x9000, %ax
        movw    %ax, %ds
        movw    %ax, %es
        movw    %ax, %fs
        movw    %ax, %gs
        movw    %ax, %ss
        movw    $0xe000, %sp
        ljmp    $0x9020, $0
stop:   hlt
        jmp     stop

drive:  .byte   0
        .balign 4
packet: .byte   16, 0
count:  .word   0
        .word   0, 0x2000                       # the buffer: 0x20000
sector: .long   1, 0
table:  .quad   0, 0
        .word   0xffff, 0
        .byte   2, 0x93, 0, 0                   # from the buffer
        .word   0xffff
target: .long   0
        .word   0
        .quad   0, 0
        .balign 4
parts:  .long   SETUP_SECTORS, 0x90000
        .long   KERNEL_SECTORS, 0x100000
        .long   INITRD_SECTORS, 0x8000000
        .long   0, 0
        .org    510
        .word   0xaa55
