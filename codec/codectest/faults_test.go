package codectest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/codec"
)

// faults maps a fact of the suite to codecs that break it.
func faults() map[string][]altered {
	var shared []byte
	var mu sync.Mutex
	type good = codec.Codec[record]
	return map[string][]altered{
		"SampleRoundTrips": {
			{encode: func(c good, v any) ([]byte, error) {
				if r, ok := v.(record); ok {
					v = record{Name: r.Name}
				}
				return c.Encode(v)
			}},
			{encode: func(c good, v any) ([]byte, error) { // other bytes each time
				raw, err := c.Encode(v)
				return append(raw, bytes.Repeat([]byte(" "), rand.IntN(1_000_000))...), err
			}},
			{encode: func(c good, v any) ([]byte, error) { // one of two orders, like a map with two keys
				raw, err := c.Encode(v)
				return append(raw, bytes.Repeat([]byte(" "), rand.IntN(2))...), err
			}},
			{encode: func(good, any) ([]byte, error) { return nil, nil }},
			{decode: func(c good, raw []byte) (any, error) { return c.Unmarshal(raw).Value, nil }},
			{decode: func(_ good, raw []byte) (any, error) { return poison(raw, errors.New("no")), nil }},
		},
		"DecodedEncodesToItsBytes": {
			{encode: func(c good, v any) ([]byte, error) {
				if d, ok := v.(codec.Decoded[record]); ok {
					v = d.Value
				}
				return c.Encode(v)
			}},
			{encode: func(c good, v any) ([]byte, error) {
				if _, ok := v.(codec.Decoded[record]); ok {
					return nil, codec.ErrType
				}
				return c.Encode(v)
			}},
		},
		"NilIsTombstone": {
			{decode: func(c good, raw []byte) (any, error) {
				if raw == nil {
					return poison(nil, codec.ErrEmpty), nil
				}
				return c.Decode(raw)
			}},
			{decode: func(c good, raw []byte) (any, error) {
				if len(raw) == 0 {
					raw = nil
				}
				return c.Decode(raw)
			}},
		},
		"GarbageIsValueOrPoison": {
			{decode: func(c good, raw []byte) (any, error) { d := c.Unmarshal(raw); return d, d.Err }},
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					panic("garbage")
				}
				return d, nil
			}},
			{decode: func(c good, raw []byte) (any, error) { d := c.Unmarshal(raw); d.Raw = nil; return d, nil }},
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					d.Value.Name = "half"
				}
				return d, nil
			}},
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					d.Err = errors.New("")
				}
				return d, nil
			}},
		},
		"WrongTypeIsAnError": {
			{encode: func(c good, v any) ([]byte, error) {
				if raw, err := c.Encode(v); err == nil {
					return raw, nil
				}
				return json.Marshal(v)
			}},
			{encode: func(c good, v any) ([]byte, error) {
				if _, ok := v.(codec.Decoded[record]); ok {
					return c.Encode(v)
				}
				return c.Encode(v.(record))
			}},
			{encode: func(c good, v any) ([]byte, error) {
				raw, err := c.Encode(v)
				if err != nil {
					err = fmt.Errorf("%w: %+v", err, v)
				}
				return raw, err
			}},
		},
		"NothingIsModified": {
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				d.Raw = bytes.Clone(raw)
				scribble(raw)
				return d, nil
			}},
			{decode: func(c good, raw []byte) (any, error) { // all values share one buffer
				d := c.Unmarshal(raw)
				if d.Err == nil && raw != nil {
					shared = append(shared[:0], d.Value.Raw...)
					d.Value.Raw = shared
				}
				return d, nil
			}},
			{encode: func(c good, v any) ([]byte, error) { // the bytes alias the value
				mu.Lock()
				defer mu.Unlock()
				if r, ok := v.(record); ok && len(r.Raw) > 0 {
					return r.Raw, nil
				}
				return c.Encode(v)
			}, decode: func(_ good, raw []byte) (any, error) {
				d := codec.Decoded[record]{Raw: raw}
				for _, sample := range samples() {
					if bytes.Equal(sample.Raw, raw) {
						d.Value = record{sample.Name, bytes.Clone(raw)}
					}
				}
				return d, nil
			}},
		},
		"ErrorsDoNotQuoteThePayload": {
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					d.Err = jsonv2.Unmarshal(raw, &d.Value) // its errors quote names
					if d.Err == nil {
						d.Err = codec.ErrMalformed
					}
					d.Value = record{}
				}
				return d, nil
			}},
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					d.Err = hidden{errors.New(string(raw))}
				}
				return d, nil
			}},
		},
	}
}

// hidden quotes the payload only in the error that it wraps.
type hidden struct{ error }

func (hidden) Error() string   { return "hidden" }
func (h hidden) Unwrap() error { return h.error }
