/**
 * What schemas are made of: kinds of values with what a reader should know of each, and objects that take no field that they
 * do not name.
 */
import { type TProperties, type TSchema, Type } from "typebox";

/** Nothing that is not known: a misspelt field protects nobody. */
export const strict = { additionalProperties: false } as const;

export const Closed = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, strict);
export const Described = <Fields extends TProperties>(description: string, fields: Fields) =>
  Type.Object(fields, { ...strict, description });

export const Text = (description: string) => Type.String({ description });
export const Texts = (description: string) => Type.Array(Type.String(), { description });
export const Whole = (description: string) => Type.Integer({ description });
export const Count = (description: string) => Type.Integer({ minimum: 0, description });
export const Fact = (description: string) => Type.Boolean({ description });
export const OneOf = <Word extends string>(words: readonly Word[], description: string) =>
  Type.Enum([...words], { description });
export const OrNull = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description });
