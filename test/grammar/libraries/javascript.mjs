// Writes zod4.jsonl, zod3.jsonl, typebox.jsonl and valibot.jsonl beside this file: a line {"name": …, "schema": …} for each construct of
// these libraries, as they write it. To renew them, in an empty folder:
//   npm install zod@4 zod3@npm:zod@3 zod-to-json-schema@3 @sinclair/typebox valibot @valibot/to-json-schema
//   cp …/test/grammar/libraries/javascript.mjs . && node javascript.mjs …/test/grammar/libraries
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { z as z3 } from 'zod3';
import { zodToJsonSchema } from 'zod-to-json-schema';
import { Type, Kind } from '@sinclair/typebox';
import * as v from 'valibot';
import { toJsonSchema } from '@valibot/to-json-schema';

const folder = process.argv[2] ?? '.';

// Each construct alone, and all of them as properties of one object, half of which are optional.
function write(library, constructs, convert, object) {
  const lines = [];
  for (const [name, make] of Object.entries(constructs)) {
    try {
      lines.push(JSON.stringify({ name, schema: convert(make) }), JSON.stringify({ name: `object of ${name}`, schema: convert(object(make)) }));
    } catch (error) {
      console.error(`${library} ${name}: ${error.message}`);  // nothing that the library can write
    }
  }
  writeFileSync(`${folder}/${library}.jsonl`, lines.join('\n') + '\n');
  console.error(`${library}: ${lines.length}`);
}

const tree4 = z.object({ value: z.string(), get children() { return z.array(tree4); } });
const zod4 = {
  string: z.string(), min: z.string().min(3), max: z.string().max(8), length: z.string().length(5), nonempty: z.string().nonempty(),
  regex: z.string().regex(/^[a-z]+-\d{2,4}$/), regexAndLengths: z.string().regex(/^[a-z]+$/).min(3).max(10),
  startsWith: z.string().startsWith('ab'), endsWith: z.string().endsWith('yz'), includes: z.string().includes('mid'),
  startsAndEnds: z.string().startsWith('ab').endsWith('yz').max(20), uppercase: z.string().uppercase(), lowercase: z.string().lowercase(),
  email: z.email(), emailMax: z.email().max(40), uuid: z.uuid(), uuidv4: z.uuidv4(), uuidv7: z.uuidv7(), guid: z.guid(), url: z.url(), httpUrl: z.httpUrl?.() ?? z.url(), emoji: z.emoji(),
  base64: z.base64(), base64url: z.base64url(), nanoid: z.nanoid(), cuid: z.cuid(), cuid2: z.cuid2(), ulid: z.ulid(), xid: z.xid(), ksuid: z.ksuid(),
  ipv4: z.ipv4(), ipv6: z.ipv6(), cidrv4: z.cidrv4(), cidrv6: z.cidrv6(), e164: z.e164(), jwt: z.jwt(), hostname: z.hostname?.() ?? z.string(), hex: z.hex?.() ?? z.string(), mac: z.mac?.() ?? z.string(),
  date: z.iso.date(), time: z.iso.time(), datetime: z.iso.datetime(), datetimeOffset: z.iso.datetime({ offset: true }), datetimeLocal: z.iso.datetime({ local: true }), duration: z.iso.duration(),
  number: z.number(), int: z.int(), int32: z.int32(), uint32: z.uint32(), float32: z.float32(), float64: z.float64(), safe: z.number().int(),
  gt: z.number().gt(0.1), gte: z.number().gte(-2.5), lt: z.number().lt(1e10), positive: z.number().positive(), negative: z.int().negative(),
  nonnegative: z.number().nonnegative(), multipleOf: z.int().multipleOf(7), step: z.number().multipleOf(0.25).min(0).max(10), range: z.int().min(-5).max(250),
  boolean: z.boolean(), null: z.null(), any: z.any(), unknown: z.unknown(), never: z.object({ a: z.string(), b: z.never().optional() }),
  literal: z.literal('on'), literals: z.literal(['a', 1, true, null]), enum: z.enum(['red', 'green', 'blue']), templateLiteral: z.templateLiteral(['id-', z.number()]), stringbool: z.string().meta({ title: 'T', description: 'd', examples: ['x'], deprecated: true, custom: 1 }),
  optional: z.object({ a: z.string().optional(), b: z.number() }), nullable: z.string().nullable(), nullish: z.object({ a: z.string().nullish() }), default: z.object({ a: z.string().default('x') }),
  array: z.array(z.string()), arrayMin: z.array(z.int()).min(2).max(4), arrayLength: z.array(z.boolean()).length(3), nonemptyArray: z.array(z.number()).nonempty(),
  tuple: z.tuple([z.string(), z.int()]), tupleRest: z.tuple([z.string()], z.boolean()), record: z.record(z.string(), z.int()), recordEnum: z.record(z.enum(['a', 'b', 'c']), z.string()),
  partialRecord: z.partialRecord(z.enum(['a', 'b']), z.int()), recordPattern: z.record(z.string().regex(/^k\d+$/), z.int()), looseRecord: z.looseRecord?.(z.string().regex(/^x_/), z.int()) ?? z.any(),
  strict: z.strictObject({ a: z.string() }), loose: z.looseObject({ a: z.string() }), catchall: z.object({ a: z.string() }).catchall(z.int()),
  union: z.union([z.string(), z.int(), z.null()]), discriminated: z.discriminatedUnion('kind', [z.object({ kind: z.literal('a'), x: z.int() }), z.object({ kind: z.literal('b'), y: z.string() })]),
  intersection: z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() })), recursive: tree4, lazy: z.lazy(() => z.string()), readonly: z.array(z.string()).readonly(), branded: z.string().brand('B'), extended: z.object({ a: z.string() }).extend({ b: z.email() }).partial(), set: z.object({ tags: z.array(z.enum(['x', 'y'])) }),
};
const options4 = { unrepresentable: 'any' };
write('zod4', zod4, (schema) => z.toJSONSchema(schema, options4), (schema) => z.object({ first: schema, second: schema.optional() }));
for (const target of ['draft-7', 'draft-4', 'openapi-3.0'])
  write(`zod4-${target}`, Object.fromEntries(['gt', 'positive', 'tuple', 'tupleRest', 'nullable', 'literal', 'recursive', 'recordEnum', 'intersection', 'email'].map((n) => [n, zod4[n]])), (schema) => z.toJSONSchema(schema, { ...options4, target }), (schema) => z.object({ first: schema, second: schema.optional() }));

const tree3 = z3.object({ value: z3.string(), children: z3.lazy(() => z3.array(tree3)) });
const zod3 = {
  string: z3.string(), lengths: z3.string().min(2).max(6), email: z3.string().email(), url: z3.string().url(), uuid: z3.string().uuid(), emoji: z3.string().emoji(), cuid: z3.string().cuid(), cuid2: z3.string().cuid2(), ulid: z3.string().ulid(), nanoid: z3.string().nanoid(),
  regex: z3.string().regex(/^a+b?$/), regexAndEmail: z3.string().email().regex(/@example/), includes: z3.string().includes('x.y'), startsWith: z3.string().startsWith('a+'), endsWith: z3.string().endsWith('z'), datetime: z3.string().datetime(), date: z3.string().date(), time: z3.string().time(), duration: z3.string().duration(), ip: z3.string().ip(), ipv4: z3.string().ip({ version: 'v4' }), cidr: z3.string().cidr({ version: 'v4' }), base64: z3.string().base64(), base64url: z3.string().base64url(), jwt: z3.string().jwt(),
  emailAndLength: z3.string().email().min(8).max(30), number: z3.number(), int: z3.number().int(), safe: z3.number().safe(), positive: z3.number().positive(), range: z3.number().min(0.1).max(0.7), multipleOf: z3.number().int().multipleOf(12), finite: z3.number().finite(), bigint: z3.bigint().positive().lt(100n), boolean: z3.boolean(), date_: z3.date(), null: z3.null(), any: z3.any(), unknown: z3.unknown(), undefined: z3.object({ a: z3.undefined() }),
  literal: z3.literal(5), enum: z3.enum(['a', 'b']), nativeEnum: z3.nativeEnum({ A: 0, B: 'b' }), optional: z3.object({ a: z3.string().optional() }), nullable: z3.number().nullable(), array: z3.array(z3.string()).min(1).max(3), nonempty: z3.array(z3.string()).nonempty(), tuple: z3.tuple([z3.string(), z3.number()]), tupleRest: z3.tuple([z3.string()]).rest(z3.number()), record: z3.record(z3.number()), recordEnum: z3.record(z3.enum(['p', 'q']), z3.string()), recordKey: z3.record(z3.string().min(2), z3.string()), map: z3.map(z3.string(), z3.number()), set: z3.set(z3.string()), strict: z3.object({ a: z3.string() }).strict(), passthrough: z3.object({ a: z3.string() }).passthrough(), catchall: z3.object({ a: z3.string() }).catchall(z3.number()), union: z3.union([z3.string(), z3.number()]), mixed: z3.union([z3.object({ a: z3.string() }), z3.array(z3.null())]), discriminated: z3.discriminatedUnion('t', [z3.object({ t: z3.literal('x') }), z3.object({ t: z3.literal('y'), n: z3.number() })]), intersection: z3.intersection(z3.object({ a: z3.string() }), z3.object({ b: z3.number() })), recursive: tree3, effects: z3.string().transform((s) => s), default: z3.object({ a: z3.string().default('d') }), branded: z3.string().brand('B'), never: z3.object({ n: z3.never().optional() }),
};
const pairs3 = (schema) => z3.object({ first: schema, second: schema.optional() });
write('zod3', zod3, (schema) => zodToJsonSchema(schema), pairs3);
write('zod3-openai', zod3, (schema) => zodToJsonSchema(schema, { target: 'openAi', $refStrategy: 'root', nameStrategy: 'duplicate-ref' }), (schema) => z3.object({ first: schema, second: schema.nullable() }));
write('zod3-openapi', zod3, (schema) => zodToJsonSchema(schema, { target: 'openApi3' }), pairs3);

const typebox = {
  Any: Type.Any(), Unknown: Type.Unknown(), String: Type.String({ minLength: 2, maxLength: 7 }), Pattern: Type.String({ pattern: '^[a-f]+$', maxLength: 9 }), Format: Type.String({ format: 'email' }), Own: Type.String({ format: 'house-number' }), Number: Type.Number({ exclusiveMinimum: 0, maximum: 1e21 }), Integer: Type.Integer({ minimum: -3, multipleOf: 3 }), Boolean: Type.Boolean(), Null: Type.Null(), Literal: Type.Literal('l'), Enum: Type.Enum({ A: 'a', B: 'b' }), Array: Type.Array(Type.Integer(), { minItems: 1, maxItems: 3 }), Unique: Type.Array(Type.Integer(), { uniqueItems: true }), Contains: Type.Array(Type.Any(), { contains: Type.Literal(1), minContains: 1 }), Tuple: Type.Tuple([Type.String(), Type.Integer()]), Object: Type.Object({ a: Type.String(), b: Type.Optional(Type.Integer()) }, { additionalProperties: false }), Open: Type.Object({ a: Type.String() }, { additionalProperties: Type.Integer(), minProperties: 2 }), Record: Type.Record(Type.String(), Type.Integer()), RecordPattern: Type.Record(Type.TemplateLiteral('k_${string}'), Type.Boolean()), RecordNumber: Type.Record(Type.Number(), Type.String()), RecordUnion: Type.Record(Type.Union([Type.Literal('x'), Type.Literal('y')]), Type.Integer()), Union: Type.Union([Type.String(), Type.Null()]), Intersect: Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Integer() })]), IntersectClosed: Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Integer() })], { unevaluatedProperties: false }), Composite: Type.Composite([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Integer() })]), Not: Type.Not(Type.String()), Never: Type.Object({ n: Type.Optional(Type.Never()) }), Partial: Type.Partial(Type.Object({ a: Type.String(), b: Type.Null() })), Recursive: Type.Recursive((This) => Type.Object({ id: Type.String(), nodes: Type.Array(This) }), { $id: 'Node' }), Module: Type.Module({ A: Type.Object({ b: Type.Ref('B') }), B: Type.Integer() }).Import('A'), TemplateLiteral: Type.TemplateLiteral('${number|red}-x'), KeyOf: Type.KeyOf(Type.Object({ a: Type.String(), b: Type.String() })), Unsafe: Type.Unsafe({ type: 'string', enum: ['u', 'v'] }), Readonly: Type.Readonly(Type.String()),
};
write('typebox', typebox, (schema) => JSON.parse(JSON.stringify(schema)), (schema) => Type.Object({ first: schema, second: Type.Optional(schema) }));

const p = v.pipe;
const valibot = {
  string: v.string(), lengths: p(v.string(), v.minLength(2), v.maxLength(5)), length: p(v.string(), v.length(4)), nonEmpty: p(v.string(), v.nonEmpty()), regex: p(v.string(), v.regex(/^x\d+$/), v.maxLength(6)), email: p(v.string(), v.email()), rfcEmail: p(v.string(), v.rfcEmail()), url: p(v.string(), v.url()), uuid: p(v.string(), v.uuid()), isoDate: p(v.string(), v.isoDate()), isoDateTime: p(v.string(), v.isoDateTime()), isoTime: p(v.string(), v.isoTime()), isoTimestamp: p(v.string(), v.isoTimestamp()), ip: p(v.string(), v.ip()), ipv4: p(v.string(), v.ipv4()), ipv6: p(v.string(), v.ipv6()), base64: p(v.string(), v.base64()), bic: p(v.string(), v.bic()), cuid2: p(v.string(), v.cuid2()), decimal: p(v.string(), v.decimal()), digits: p(v.string(), v.digits()), emoji: p(v.string(), v.emoji()), hexColor: p(v.string(), v.hexColor()), hexadecimal: p(v.string(), v.hexadecimal()), imei: p(v.string(), v.imei()), isoWeek: p(v.string(), v.isoWeek()), mac: p(v.string(), v.mac()), nanoid: p(v.string(), v.nanoid()), octal: p(v.string(), v.octal()), ulid: p(v.string(), v.ulid()), number: p(v.number(), v.minValue(-1.5), v.maxValue(3)), integer: p(v.number(), v.integer()), multipleOf: p(v.number(), v.multipleOf(5)), gtValue: p(v.number(), v.gtValue(2)), ltValue: p(v.number(), v.ltValue(2)), boolean: v.boolean(), null: v.null(), any: v.any(), unknown: v.unknown(), literal: v.literal(3), picklist: v.picklist(['a', 'b']), enum: v.enum({ A: 'x', B: 'y' }), array: p(v.array(v.number()), v.minLength(1), v.maxLength(2)), tuple: v.tuple([v.string(), v.number()]), strictTuple: v.strictTuple([v.string(), v.number()]), looseTuple: v.looseTuple([v.string()]), tupleWithRest: v.tupleWithRest([v.string()], v.boolean()), object: v.object({ a: v.string(), b: v.optional(v.number()) }), strictObject: v.strictObject({ a: v.string() }), looseObject: v.looseObject({ a: v.string() }), objectWithRest: v.objectWithRest({ a: v.string() }, v.number()), record: v.record(v.string(), v.number()), recordPicklist: v.record(v.picklist(['a', 'b']), v.number()), entries: p(v.record(v.string(), v.number()), v.minEntries(1), v.maxEntries(3)), union: v.union([v.string(), v.number()]), variant: v.variant('t', [v.object({ t: v.literal('a') }), v.object({ t: v.literal('b'), n: v.number() })]), intersect: v.intersect([v.object({ a: v.string() }), v.object({ b: v.number() })]), nullable: v.nullable(v.string()), nullish: v.object({ a: v.nullish(v.string()) }), lazy: v.lazy(() => v.string()), described: p(v.string(), v.title('T'), v.description('d')), exactOptional: v.object({ a: v.exactOptional(v.string()) }), value: p(v.string(), v.value('v')),
};
write('valibot', valibot, (schema) => toJsonSchema(schema, { errorMode: 'ignore' }), (schema) => v.object({ first: schema, second: v.optional(schema) }));
