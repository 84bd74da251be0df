// Package topics is the catalog of the pipeline's topics: for each one its name, its record type, the codec of its
// values, its key, its cleanup policy and its retention; and the creation of what is missing on a cluster.
//
// Values are JSON as FlightDeck writes it: every declared field in its declared order, absent ones as null (an [Output]
// leaves them out), compact, doubles in the form that Java prints. Reading is tolerant where FlightDeck's is: unknown
// fields are skipped, scalars are converted, legacy and camelCase names are read where they occur, and what follows the
// first value is ignored. A record of the wrong types is poison, never a half-filled value, and so is a JSON null in
// place of a record: only a Kafka null is a tombstone.
//
// Conversations and free-form values are [Raw]: they pass through byte for byte and are never decoded. What a codec
// yields aliases the bytes that it was given; treat both as read-only.
package topics
