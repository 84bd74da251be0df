package codectest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is the value type of the codecs under test.
type record struct {
	Name string
	Raw  json.RawMessage
}

func samples() []record {
	return []record{{Name: "a", Raw: json.RawMessage(`{"x":1}`)}, {Name: "b", Raw: json.RawMessage(`"text"`)}}
}

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

// verdict is a require.TestingT that only records whether the check failed.
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
	Run(t, altered{}, samples()...)
	Copies(t, altered{}, samples()...)
}

func TestFaultyCodecFails(t *testing.T) {
	for _, fact := range (suite[record]{}).facts() {
		for i, c := range faults()[fact.name] {
			t.Run(fmt.Sprintf("%s/%d", fact.name, i), func(t *testing.T) {
				for _, f := range (suite[record]{codec: c, samples: samples()}).facts() {
					if f.name == fact.name {
						require.False(t, passes(f.check), "the suite passes a codec that breaks this")
					}
				}
			})
		}
	}
}

func TestSuiteRestoresSamplesWhoseMemoryACodecShares(t *testing.T) {
	for _, c := range faults()["NothingIsModified"] {
		s := suite[record]{codec: c, samples: samples()}
		require.False(t, passes(s.untouched))
		require.Equal(t, samples(), s.samples)
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
	require.False(t, passes(suite[record]{codec: c, samples: samples()}.concurrent))
}

func TestPanicInAGoroutineFailsTheSuiteOnly(t *testing.T) {
	calls := make(chan struct{}, 1)
	c := altered{decode: func(c codec.Codec[record], raw []byte) (any, error) {
		select {
		case calls <- struct{}{}:
			return c.Decode(raw)
		default:
			panic("second call")
		}
	}}
	require.False(t, passes(suite[record]{codec: c, samples: samples()}.concurrent))
}

func TestAliasingCodecPassesRunAndFailsCopies(t *testing.T) {
	c := codec.Of[[]byte](aliasing{})
	Run(t, c, []byte("text"))
	require.False(t, passes(suite[[]byte]{codec: c, samples: [][]byte{[]byte("text")}}.copies))
}

type aliasing struct{}

func (aliasing) Marshal(v []byte) ([]byte, error)     { return bytes.Clone(v), nil }
func (aliasing) Unmarshal(raw []byte) ([]byte, error) { return raw, nil }

func TestCodecWithoutRecoverFailsRecovers(t *testing.T) {
	require.False(t, passes(suite[record]{codec: withoutRecover{panicking[record]{}}}.recovers))
	Recovers(t, func(f codec.Format[record]) Codec { return codec.Of(f) })
}

// withoutRecover does not recover from panics of its format.
type withoutRecover struct{ codec.Format[record] }

func (c withoutRecover) Encode(value any) ([]byte, error) { return c.Marshal(value.(record)) }
func (c withoutRecover) Decode(raw []byte) (any, error)   { return c.Unmarshal(raw) }

// version compares by its Equal method.
type version struct{ text string }

func (v version) Equal(w version) bool { return len(v.text) == len(w.text) }

func TestSamplesAreComparedByTheirEqualMethod(t *testing.T) {
	require.True(t, equal(version{"1"}, version{"2"}))
	require.False(t, equal(version{"1"}, version{"12"}))
	require.False(t, equal(record{Name: "1"}, record{Name: "2"}))
}
