package rows

import "google.golang.org/protobuf/encoding/protowire"

// fieldDeadline is the number of the field with the earliest deadline of a row, in Unix milliseconds. It is optional.
const fieldDeadline = 2

// Deadline reads the earliest deadline of an encoded row, in Unix milliseconds. ok is false if the row has none or cannot
// be decoded. Only this field is decoded, because Deadline is called for every row that is written or recovered.
func Deadline(raw []byte) (ms int64, ok bool) {
	for len(raw) > 0 {
		field, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return 0, false
		}
		raw = raw[n:]
		if field == fieldDeadline && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(raw)
			return int64(v), n >= 0 && v != 0
		}
		if n = protowire.ConsumeFieldValue(field, kind, raw); n < 0 {
			return 0, false
		}
		raw = raw[n:]
	}
	return 0, false
}
