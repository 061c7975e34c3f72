@group(0) @binding(0) var<storage, read> b0: array<u32>; // sizes
@group(0) @binding(1) var<storage, read> b1: array<u32>; // x1
@group(0) @binding(2) var<storage, read> b2: array<u32>; // x2
@group(0) @binding(3) var<storage, read_write> b3: array<u32>; // x3
@group(0) @binding(4) var<storage, read_write> b4: array<u32>; // x4
var<workgroup> s0: array<u32, 256>;
var<workgroup> s1: array<u32, 256>;
var<workgroup> s2: array<u32, 16>;
var<workgroup> s3: array<u32, 16>;
var<private> zero_bits: u32 = 0u;
@compute @workgroup_size(256)
fn sample_38b4ace7169c23e4(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
  let r0: u32 = 1u;
  let r1: u32 = b0[r0];
  let r2: u32 = 3u;
  let r3: u32 = b0[r2];
  let r4: u32 = 2u;
  let r5: u32 = b0[r4];
  let r6: u32 = 0u;
  let r7: u32 = b0[r6];
  let r8: u32 = group[0];
  let r9: u32 = r8 + r0;
  let r10: u32 = min(r9, r1);
  for (var r11: u32 = r8; r11 < r10; r11 = r11 + r0) {
    let r12: u32 = b2[r11];
    let r13: i32 = bitcast<i32>(r12);
    let r14: u32 = bitcast<u32>(r13);
    let r15: bool = r14 < r3;
    let r16: u32 = 256u;
    let r17: u32 = select(r6, r14, r15);
    let r18: u32 = select(r6, r16, r15);
    let r19: u32 = r17 * r16;
    var v0: u32 = r6;
    var v1: u32 = r6;
    var v2: u32 = r6;
    let r20: u32 = 4294967295u;
    var v3: u32 = r20;
    var v4: u32 = r6;
    var v5: u32 = r6;
    let r21: u32 = thread;
    let r22: u32 = 1024u;
    for (var r23: u32 = r21; r23 < r18; r23 = r23 + r22) {
      let r24: u32 = r19 + r23;
      let r25: u32 = b1[r24];
      let r26: f32 = bitcast<f32>(r25);
      let r27: f32 = bitcast<f32>(0x7f800000u | zero_bits);
      let r28: u32 = bitcast<u32>(r26);
      let r29: u32 = 2147483647u;
      let r30: u32 = 2139095040u;
      let r31: u32 = r28 & r29;
      let r32: bool = r30 < r31;
      let r33: bool = r26 == r27;
      let r34: bool = r32 | r33;
      let r35: u32 = v3;
      let r36: u32 = min(r35, r23);
      let r37: u32 = select(r35, r36, r34);
      v3 = r37;
      let r38: f32 = bitcast<f32>(0x00000000u);
      let r39: u32 = 2147483648u;
      let r40: bool = r26 == r38;
      let r41: f32 = select(r26, r38, r40);
      let r42: u32 = bitcast<u32>(r41);
      let r43: bool = r39 <= r42;
      let r44: u32 = ~r42;
      let r45: u32 = r42 | r39;
      let r46: u32 = select(r45, r44, r43);
      let r47: u32 = v4;
      let r48: bool = r47 < r46;
      if (r48) {
        v4 = r46;
        v5 = r23;
      }
      let r49: u32 = r23 + r16;
      let r50: bool = r49 < r18;
      if (r50) {
        let r51: u32 = r19 + r49;
        let r52: u32 = b1[r51];
        let r53: f32 = bitcast<f32>(r52);
        let r54: u32 = bitcast<u32>(r53);
        let r55: u32 = r54 & r29;
        let r56: bool = r30 < r55;
        let r57: bool = r53 == r27;
        let r58: bool = r56 | r57;
        let r59: u32 = v3;
        let r60: u32 = min(r59, r49);
        let r61: u32 = select(r59, r60, r58);
        v3 = r61;
        let r62: bool = r53 == r38;
        let r63: f32 = select(r53, r38, r62);
        let r64: u32 = bitcast<u32>(r63);
        let r65: bool = r39 <= r64;
        let r66: u32 = ~r64;
        let r67: u32 = r64 | r39;
        let r68: u32 = select(r67, r66, r65);
        let r69: u32 = v4;
        let r70: bool = r69 < r68;
        if (r70) {
          v4 = r68;
          v5 = r49;
        }
      }
      let r71: u32 = 512u;
      let r72: u32 = r23 + r71;
      let r73: bool = r72 < r18;
      if (r73) {
        let r74: u32 = r19 + r72;
        let r75: u32 = b1[r74];
        let r76: f32 = bitcast<f32>(r75);
        let r77: u32 = bitcast<u32>(r76);
        let r78: u32 = r77 & r29;
        let r79: bool = r30 < r78;
        let r80: bool = r76 == r27;
        let r81: bool = r79 | r80;
        let r82: u32 = v3;
        let r83: u32 = min(r82, r72);
        let r84: u32 = select(r82, r83, r81);
        v3 = r84;
        let r85: bool = r76 == r38;
        let r86: f32 = select(r76, r38, r85);
        let r87: u32 = bitcast<u32>(r86);
        let r88: bool = r39 <= r87;
        let r89: u32 = ~r87;
        let r90: u32 = r87 | r39;
        let r91: u32 = select(r90, r89, r88);
        let r92: u32 = v4;
        let r93: bool = r92 < r91;
        if (r93) {
          v4 = r91;
          v5 = r72;
        }
      }
      let r94: u32 = 768u;
      let r95: u32 = r23 + r94;
      let r96: bool = r95 < r18;
      if (r96) {
        let r97: u32 = r19 + r95;
        let r98: u32 = b1[r97];
        let r99: f32 = bitcast<f32>(r98);
        let r100: u32 = bitcast<u32>(r99);
        let r101: u32 = r100 & r29;
        let r102: bool = r30 < r101;
        let r103: bool = r99 == r27;
        let r104: bool = r102 | r103;
        let r105: u32 = v3;
        let r106: u32 = min(r105, r95);
        let r107: u32 = select(r105, r106, r104);
        v3 = r107;
        let r108: bool = r99 == r38;
        let r109: f32 = select(r99, r38, r108);
        let r110: u32 = bitcast<u32>(r109);
        let r111: bool = r39 <= r110;
        let r112: u32 = ~r110;
        let r113: u32 = r110 | r39;
        let r114: u32 = select(r113, r112, r111);
        let r115: u32 = v4;
        let r116: bool = r115 < r114;
        if (r116) {
          v4 = r114;
          v5 = r95;
        }
      }
    }
    let r117: u32 = v3;
    let r118: u32 = v4;
    let r119: u32 = v5;
    let r120: u32 = 16u;
    s0[r21] = r117;
    s1[r21] = r117;
    workgroupBarrier(); storageBarrier();
    let r121: bool = r21 < r120;
    if (r121) {
      let r122: u32 = r21 * r120;
      let r123: u32 = s0[r122];
      let r124: u32 = s1[r122];
      var v6: u32 = r123;
      var v7: u32 = r124;
      let r125: u32 = r122 + r0;
      let r126: u32 = r122 + r120;
      for (var r127: u32 = r125; r127 < r126; r127 = r127 + r0) {
        let r128: u32 = v6;
        let r129: u32 = v7;
        let r130: u32 = s0[r127];
        let r131: u32 = s1[r127];
        let r132: u32 = min(r128, r130);
        v6 = r132;
        v7 = r129;
      }
      let r133: u32 = v6;
      let r134: u32 = v7;
      s2[r21] = r133;
      s3[r21] = r134;
    }
    workgroupBarrier(); storageBarrier();
    let r135: u32 = s2[r6];
    let r136: u32 = s3[r6];
    var v8: u32 = r135;
    var v9: u32 = r136;
    for (var r137: u32 = r0; r137 < r120; r137 = r137 + r0) {
      let r138: u32 = v8;
      let r139: u32 = v9;
      let r140: u32 = s2[r137];
      let r141: u32 = s3[r137];
      let r142: u32 = min(r138, r140);
      v8 = r142;
      v9 = r139;
    }
    let r143: u32 = v8;
    let r144: u32 = v9;
    s0[r21] = r118;
    s1[r21] = r119;
    workgroupBarrier(); storageBarrier();
    if (r121) {
      let r145: u32 = r21 * r120;
      let r146: u32 = s0[r145];
      let r147: u32 = s1[r145];
      var v10: u32 = r146;
      var v11: u32 = r147;
      let r148: u32 = r145 + r0;
      let r149: u32 = r145 + r120;
      for (var r150: u32 = r148; r150 < r149; r150 = r150 + r0) {
        let r151: u32 = v10;
        let r152: u32 = v11;
        let r153: u32 = s0[r150];
        let r154: u32 = s1[r150];
        let r155: bool = r153 < r151;
        let r156: bool = r151 == r153;
        let r157: bool = r152 < r154;
        let r158: bool = r156 & r157;
        let r159: bool = r155 | r158;
        let r160: u32 = select(r153, r151, r159);
        let r161: u32 = select(r154, r152, r159);
        v10 = r160;
        v11 = r161;
      }
      let r162: u32 = v10;
      let r163: u32 = v11;
      s2[r21] = r162;
      s3[r21] = r163;
    }
    workgroupBarrier(); storageBarrier();
    let r164: u32 = s2[r6];
    let r165: u32 = s3[r6];
    var v12: u32 = r164;
    var v13: u32 = r165;
    for (var r166: u32 = r0; r166 < r120; r166 = r166 + r0) {
      let r167: u32 = v12;
      let r168: u32 = v13;
      let r169: u32 = s2[r166];
      let r170: u32 = s3[r166];
      let r171: bool = r169 < r167;
      let r172: bool = r167 == r169;
      let r173: bool = r168 < r170;
      let r174: bool = r172 & r173;
      let r175: bool = r171 | r174;
      let r176: u32 = select(r169, r167, r175);
      let r177: u32 = select(r170, r168, r175);
      v12 = r176;
      v13 = r177;
    }
    let r178: u32 = v12;
    let r179: u32 = v13;
    let r180: u32 = 8388607u;
    let r181: bool = r180 < r178;
    let r182: bool = !(r143 == r20);
    if (r182) {
      let r183: u32 = r19 + r143;
      let r184: u32 = b1[r183];
      let r185: f32 = bitcast<f32>(r184);
      let r186: u32 = bitcast<u32>(r185);
      v0 = r0;
      v1 = r143;
      v2 = r186;
    } else {
      let r187: u32 = select(r2, r6, r181);
      v0 = r187;
    }
    let r188: u32 = v0;
    let r189: bool = r188 == r6;
    let r190: u32 = select(r6, r18, r189);
    let r191: bool = r21 == r6;
    if (r191) {
      let r192: u32 = v0;
      let r193: u32 = v1;
      let r194: u32 = v2;
      let r195: bool = r192 == r6;
      let r196: u32 = select(r20, r179, r195);
      b3[r11] = r196;
      let r197: u32 = r11 * r2;
      b4[r197] = r192;
      let r198: u32 = r197 + r0;
      b4[r198] = r193;
      let r199: u32 = r197 + r4;
      b4[r199] = r194;
    }
    let r200: u32 = v0;
    let r201: bool = r200 == r6;
    let r202: u32 = select(r6, r190, r201);
  }
}
