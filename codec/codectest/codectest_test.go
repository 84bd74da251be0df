package codectest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is what the codecs under test carry.
type record struct {
	Name string
	Raw  json.RawMessage
}

var samples = []record{{Name: "a", Raw: json.RawMessage(`{"x":1}`)}, {Name: "b", Raw: json.RawMessage(`"text"`)}}

// altered is a good codec with one side replaced.
type altered struct {
	encode func(good codec.Codec[record], value any) ([]byte, error)
	decode func(good codec.Codec[record], raw []byte) (any, error)
}

func (a altered) Encode(value any) ([]byte, error) {
	if a.encode == nil {
		return codec.JSON[record]().Encode(value)
	}
	return a.encode(codec.JSON[record](), value)
}

func (a altered) Decode(raw []byte) (any, error) {
	if a.decode == nil {
		return codec.JSON[record]().Decode(raw)
	}
	return a.decode(codec.JSON[record](), raw)
}

func poison(raw []byte, cause error) codec.Decoded[record] {
	return codec.Decoded[record]{Raw: raw, Err: cause}
}

// verdict is a require.TestingT that only notes a failure.
type verdict struct{ failed bool }

func (v *verdict) Errorf(string, ...any) { v.failed = true }
func (v *verdict) FailNow()              { v.failed = true; runtime.Goexit() }

func passes(check func(require.TestingT)) bool {
	var v verdict
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(&v)
	}()
	<-done
	return !v.failed
}

func TestGoodCodecPasses(t *testing.T) {
	Run(t, altered{}, samples...)
	Copies(t, altered{}, samples...)
}

// faults maps a fact of the suite to codecs that break it.
func faults() map[string][]altered {
	var shared []byte
	var mu sync.Mutex
	type good = codec.Codec[record]
	return map[string][]altered{
		"SampleComesBack": {
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
		"WrongTypeIsRefused": {
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
			{decode: func(c good, raw []byte) (any, error) { // values live in one buffer
				d := c.Unmarshal(raw)
				if d.Err == nil && raw != nil {
					shared = append(shared[:0], d.Value.Raw...)
					d.Value.Raw = shared
				}
				return d, nil
			}},
			{encode: func(c good, v any) ([]byte, error) { // bytes live in one buffer
				mu.Lock()
				defer mu.Unlock()
				if r, ok := v.(record); ok && len(r.Raw) > 0 {
					return r.Raw, nil
				}
				return c.Encode(v)
			}, decode: func(_ good, raw []byte) (any, error) {
				d := codec.Decoded[record]{Raw: raw}
				for _, sample := range samples {
					if bytes.Equal(sample.Raw, raw) {
						d.Value = record{sample.Name, bytes.Clone(raw)}
					}
				}
				return d, nil
			}},
		},
		"ErrorsQuoteNoPayload": {
			{decode: func(c good, raw []byte) (any, error) {
				d := c.Unmarshal(raw)
				if d.Err != nil {
					d.Err = json.Unmarshal(raw, &d.Value)
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

// hidden shows its payload to whoever unwraps it.
type hidden struct{ error }

func (hidden) Error() string   { return "hidden" }
func (h hidden) Unwrap() error { return h.error }

func TestFaultyCodecFails(t *testing.T) {
	for _, fact := range (suite[record]{}).facts() {
		for i, c := range faults()[fact.name] {
			t.Run(fmt.Sprintf("%s/%d", fact.name, i), func(t *testing.T) {
				for _, f := range (suite[record]{codec: c, samples: samples}).facts() {
					if f.name == fact.name {
						require.False(t, passes(f.check), "the suite passes a codec that breaks this")
					}
				}
			})
		}
	}
}

func TestCodecWithSharedBufferFailsConcurrentUse(t *testing.T) {
	// Two calls meet on a channel and take each other's value: unsafe for concurrent use, without a data race.
	swap := make(chan []byte, 1)
	c := altered{decode: func(c codec.Codec[record], raw []byte) (any, error) {
		d := c.Unmarshal(raw)
		select {
		case swap <- raw:
		case other := <-swap:
			d.Value = c.Unmarshal(other).Value
		}
		return d, nil
	}}
	require.False(t, passes(suite[record]{codec: c, samples: samples}.concurrent))
}

func TestPanicInOneGoroutineFailsAndDoesNotEndTheProcess(t *testing.T) {
	calls := make(chan struct{}, 1)
	c := altered{decode: func(c codec.Codec[record], raw []byte) (any, error) {
		select {
		case calls <- struct{}{}:
			return c.Decode(raw)
		default:
			panic("second call")
		}
	}}
	require.False(t, passes(suite[record]{codec: c, samples: samples}.concurrent))
}

func TestAliasingCodecRunsButDoesNotCopy(t *testing.T) {
	c := codec.Of[[]byte](aliasing{})
	Run(t, c, []byte("text"))
	require.False(t, passes(suite[[]byte]{codec: c, samples: [][]byte{[]byte("text")}}.copies))
}

type aliasing struct{}

func (aliasing) Marshal(v []byte) ([]byte, error)     { return bytes.Clone(v), nil }
func (aliasing) Unmarshal(raw []byte) ([]byte, error) { return raw, nil }

func TestCodecWithoutRecoverFailsRecovers(t *testing.T) {
	require.False(t, passes(suite[record]{codec: naked{panicking[record]{}}}.recovers))
	Recovers(t, func(f codec.Format[record]) Codec { return codec.Of(f) })
}

// naked passes panics on.
type naked struct{ codec.Format[record] }

func (n naked) Encode(value any) ([]byte, error) { return n.Marshal(value.(record)) }
func (n naked) Decode(raw []byte) (any, error)   { return n.Unmarshal(raw) }

// version compares by its Equal method.
type version struct{ text string }

func (v version) Equal(w version) bool { return len(v.text) == len(w.text) }

func TestSamplesAreComparedByTheirEqualMethod(t *testing.T) {
	require.True(t, equal(version{"1"}, version{"2"}))
	require.False(t, equal(version{"1"}, version{"12"}))
	require.False(t, equal(record{Name: "1"}, record{Name: "2"}))
}
