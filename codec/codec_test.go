package codec_test

import (
	"errors"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/codec/codectest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ goka.Codec = codec.Codec[int]{}

// formatFuncs is a format that calls the functions of a test.
type formatFuncs struct {
	marshal   func(string) ([]byte, error)
	unmarshal func([]byte) (string, error)
}

func (f formatFuncs) Marshal(v string) ([]byte, error)     { return f.marshal(v) }
func (f formatFuncs) Unmarshal(raw []byte) (string, error) { return f.unmarshal(raw) }

func TestPanickingFormatGivesPoisonAndAnError(t *testing.T) {
	codectest.Recovers(t, func(f codec.Format[map[string]int]) codectest.Codec { return codec.Of(f) })
	codectest.Recovers(t, func(f codec.Format[any]) codectest.Codec { return codec.Of(f) })
}

func TestErrorNamesTheRuntimePanic(t *testing.T) {
	var none []int
	c := codec.Of[string](formatFuncs{
		marshal:   func(string) ([]byte, error) { return nil, errors.New(string(rune(none[3]))) },
		unmarshal: func([]byte) (string, error) { return string(rune(none[3])), nil },
	})
	d := c.Unmarshal([]byte("x"))
	require.ErrorIs(t, d.Err, codec.ErrPanic)
	require.EqualError(t, d.Err,
		"codec: format panicked: decode string: runtime error: index out of range [3] with length 0")
	_, err := c.Marshal("x")
	require.ErrorIs(t, err, codec.ErrPanic)
}

func TestZeroCodecGivesPoisonInsteadOfAPanic(t *testing.T) {
	require.ErrorIs(t, codec.Codec[string]{}.Unmarshal([]byte("x")).Err, codec.ErrPanic)
}

func TestPoisonHasNoValue(t *testing.T) {
	cause := errors.New("half way")
	c := codec.Of[string](formatFuncs{unmarshal: func([]byte) (string, error) { return "half", cause }})
	require.Equal(t, codec.Decoded[string]{Raw: []byte("x"), Err: cause}, c.Unmarshal([]byte("x")))
}

func TestEncodeOfADecodedDependsOnItsKind(t *testing.T) {
	c := codec.JSON[int]()
	for name, tc := range map[string]struct {
		in   codec.Decoded[int]
		want []byte
	}{
		"value":         {c.Unmarshal([]byte(" 7 ")), []byte("7")},
		"changed value": {codec.Decoded[int]{Value: 8, Raw: []byte("7")}, []byte("8")},
		"tombstone":     {c.Unmarshal(nil), nil},
		"poison":        {c.Unmarshal([]byte("{")), []byte("{")},
		"empty poison":  {c.Unmarshal([]byte{}), []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := c.Encode(tc.in)
			require.NoError(t, err)
			require.Equal(t, tc.want, raw)
		})
	}
}

func TestEncodedBytesAreReturnedUnchanged(t *testing.T) {
	for name, c := range map[string]codectest.Codec{
		"json": codec.JSON[int](), "any": codec.JSON[any](), "bytes": codec.Bytes(), "string": codec.String(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range [][]byte{[]byte(" 7"), []byte("{"), {}, nil} {
				raw, err := c.Encode(codec.Encoded(want))
				require.NoError(t, err)
				require.Equal(t, want, raw)
			}
		})
	}
}

func TestDecodedOfAnyIsNotEncodedAsAValue(t *testing.T) {
	raw, err := codec.JSON[any]().Encode(codec.Decoded[any]{Value: 1.0, Raw: []byte("1")})
	require.NoError(t, err)
	require.Equal(t, "1", string(raw))
}

func TestWrongTypeNamesBothTypes(t *testing.T) {
	_, err := codec.JSON[error]().Encode(7)
	require.ErrorIs(t, err, codec.ErrType)
	require.EqualError(t, err, "codec: wrong type: got int, want error")
	_, err = codec.String().Encode(nil)
	require.EqualError(t, err, "codec: wrong type: got <nil>, want string")
}
