package store

import (
	"encoding/binary"
	"fmt"
	"time"
)

// TimerTopic returns the name of a group's virtual timer topic, "{group}-timer". The topic is an input edge of the group's
// graph and never exists on a broker.
func TimerTopic(group string) string { return group + "-timer" }

// DueCodec is the goka.Codec of the virtual timer topic: a Due as eight bytes, its milliseconds since the epoch, big
// endian. The zero value is ready to use.
type DueCodec struct{}

// Encode encodes a Due, whose time is truncated to the millisecond. Any other type is an error.
func (DueCodec) Encode(value any) ([]byte, error) {
	due, ok := value.(Due)
	if !ok {
		return nil, fmt.Errorf("timer: encode %T: want %T", value, due)
	}
	return binary.BigEndian.AppendUint64(nil, uint64(due.At.UnixMilli())), nil
}

// Decode always returns a Due, in UTC, and a nil error. Bytes that Encode did not write decode to the zero Due.
func (DueCodec) Decode(raw []byte) (any, error) {
	if len(raw) != 8 {
		return Due{}, nil
	}
	return Due{At: time.UnixMilli(int64(binary.BigEndian.Uint64(raw))).UTC()}, nil
}
