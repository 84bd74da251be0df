// Package topics is the catalog of the pipeline's topics. It has the name, record type, codec, key, cleanup policy and
// retention of each topic, and [Ensure] creates the topics that a cluster lacks.
//
// FlightDeck is the agent pipeline that this module is compatible with. Values are JSON in its format: compact, all
// declared fields in their declared order, absent fields as null (an [Output] omits them), doubles as Java prints them.
// Decoding is as tolerant as FlightDeck's: unknown fields are skipped, scalars are converted, legacy and camelCase names
// are accepted in some records, and text after the first value is ignored. If a field has a wrong type, the whole record is
// poison (it cannot be decoded). A JSON null in place of a record is poison too: only a Kafka null is a tombstone.
//
// Conversations and free-form values are [Raw]: they are passed on byte for byte and never decoded. Decoded values alias
// the bytes of the record; treat both as read-only.
//
// WIRE.md describes each topic for programs in other languages. Schemas returns the JSON Schemas of the values, which the folder
// schema contains, and asyncapi.json is an AsyncAPI 3 document of all topics. They are made of the record types by tests.
package topics
