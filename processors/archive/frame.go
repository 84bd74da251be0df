package archive

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// encode appends a record: its offset, its timestamp, its key, value and headers. A length is one more than the number of bytes, 0
// for a Kafka null.
func encode(b []byte, r *kgo.Record) []byte {
	b = binary.AppendVarint(b, r.Offset)
	return content(b, r)
}

// content is encode without the offset.
func content(b []byte, r *kgo.Record) []byte {
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendBytes(b, []byte(h.Key))
		b = appendBytes(b, h.Value)
	}
	return b
}

func appendBytes(b, field []byte) []byte {
	if field == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(field))+1), field...)
}

// errFrame says that the bytes are not a record.
var errFrame = errors.New("it is damaged")

// decode is the reverse of encode. The record shares the bytes.
func decode(b []byte) (*kgo.Record, error) {
	d := decoder{b: b}
	r := &kgo.Record{Offset: d.number()}
	r.Timestamp = time.UnixMilli(d.number())
	r.Key, r.Value = d.bytes(), d.bytes()
	for n := d.count(); n > 0 && !d.bad; n-- {
		name := d.bytes()
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(name), Value: d.bytes()})
	}
	if d.bad || len(d.b) > 0 {
		return nil, errFrame
	}
	return r, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) count() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) skip(n int) {
	if n <= 0 {
		d.bad, d.b = true, nil
		return
	}
	d.b = d.b[n:]
}

func (d *decoder) bytes() []byte {
	switch n := d.count(); {
	case d.bad || n == 0:
		return nil
	case n-1 > uint64(len(d.b)):
		d.bad = true
		return nil
	default:
		field := d.b[: n-1 : n-1]
		d.b = d.b[n-1:]
		return field
	}
}
