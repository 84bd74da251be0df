package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/codec/codectest"
)

type order struct {
	ID    string             `json:"id"`
	Items []item             `json:"items"`
	Tags  map[string]string  `json:"tags"`
	Note  *string            `json:"note"`
	Price float64            `json:"price"`
	Extra json.RawMessage    `json:"extra"`
	Cells [2]int16           `json:"cells"`
	Rates map[string]float64 `json:"rates"`
}

type item struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Ready bool   `json:"ready"`
}

func orders() []order {
	note := "naïve <b>&</b> \u2028 \x00 \"quoted\""
	return []order{
		{Items: []item{}, Tags: map[string]string{}, Rates: map[string]float64{}, Extra: json.RawMessage("null")},
		{
			ID: "o-1", Items: []item{{"pen", math.MaxInt64, true}, {"ink", -1, false}},
			Tags: map[string]string{"b": "2", "a": "1"},
			Note: &note, Price: 0.1, Extra: json.RawMessage(`{"z":1.10}`), Cells: [2]int16{1, 255},
			Rates: map[string]float64{"x": 1e300},
		},
	}
}

func TestJSONPassesTheCodecSuite(t *testing.T) {
	t.Run("struct", func(t *testing.T) { codectest.Run(t, codec.JSON[order](), orders()...) })
	t.Run("pointer", func(t *testing.T) {
		codectest.Run(t, codec.JSON[*item](), &item{}, &item{Name: "pen"}, nil)
	})
	t.Run("any", func(t *testing.T) {
		codectest.Run[any](t, codec.JSON[any](), "text", 1.5, true, []any{nil, map[string]any{"a": []any{}}})
	})
	t.Run("map", func(t *testing.T) {
		codectest.Run(t, codec.JSON[map[string]int](), map[string]int{}, map[string]int{"z": 1, "a": 2, "m": 3})
	})
	t.Run("loud", func(t *testing.T) { codectest.Run(t, codec.JSON[loud](), loud{"text"}) })
	codectest.Copies(t, codec.JSON[order](), orders()...)
	codectest.Copies[any](t, codec.JSON[any](), "text", map[string]any{"name": "value"})
}

// loud quotes what it reads in its errors and panics.
type loud struct{ text string }

func (l loud) MarshalText() ([]byte, error) { return []byte(l.text), nil }

func (l *loud) UnmarshalText(text []byte) error {
	switch {
	case len(text)%3 == 0:
		panic(string(text))
	case len(text) > 4:
		return fmt.Errorf("%q is loud", text)
	}
	l.text = string(text)
	return nil
}

func TestJSONIsReadAsByJava(t *testing.T) {
	c := codec.JSON[item]()
	for text, want := range map[string]item{
		`{"name":"a","count":1,"ready":true}`:         {"a", 1, true},
		" \t\r\n{\"name\":\"a\"}\n":                   {Name: "a"},
		`{"name":"a"} {"name":"b"}`:                   {Name: "a"},
		`{"name":"a"}, trailing text`:                 {Name: "a"},
		"{\"name\":\"a\"}\xff\x00":                    {Name: "a"},
		`{"name":"a"}` + strings.Repeat("[", 5000):    {Name: "a"},
		`{"name":"a","unknown":{"x":[1]},"count":2}`:  {Name: "a", Count: 2},
		`{"name":"a","name":"b","other":1,"other":2}`: {Name: "b"},
		`{"name":null,"count":null,"ready":null}`:     {},
		`{"NAME":"a","Name":"b"}`:                     {},
		`{"name":"\u00e9\ud83d\ude00 \/"}`:            {Name: "é😀 /"},
		`null`:                                        {},
		`{}`:                                          {},
	} {
		d := c.Unmarshal([]byte(text))
		require.NoError(t, d.Err, "%.80q", text)
		require.Equal(t, want, d.Value, "%.80q", text)
		require.Equal(t, text, string(d.Raw))
	}
}

func TestRepeatedObjectsAreMerged(t *testing.T) {
	type outer struct {
		Item item `json:"item"`
	}
	d := codec.JSON[outer]().Unmarshal([]byte(`{"item":{"name":"a","count":1},"item":{"count":2}}`))
	require.NoError(t, d.Err)
	require.Equal(t, item{Name: "a", Count: 2}, d.Value.Item)
}

func TestJSONPoisonHasCauseAndPosition(t *testing.T) {
	c := codec.JSON[item]()
	deep := `{"x":` + strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth) + "}"
	for text, want := range map[string]string{
		"":                               "codec: empty value",
		" \n":                            "codec: empty value",
		`{"name":"Berlin`:                "codec: malformed value: JSON ends early at byte 15",
		`{"name":Berlin}`:                "codec: malformed value: JSON breaks at byte 8",
		"{\"name\":\"\xff\"}":            "codec: malformed value: JSON breaks at byte 9",
		"{\"name\":\"a\",\"\xff\":1}":    "codec: malformed value: JSON breaks at byte 13",
		`{"name":"\ud83d"}`:              "codec: malformed value: JSON breaks at byte 9",
		`{"count":"5"}`:                  "codec: value does not fit: JSON string, Go int64, byte 9",
		`{"count":99999999999999999999}`: "codec: value does not fit: JSON number, Go int64, byte 9",
		`{"count":3.7}`:                  "codec: value does not fit: JSON number, Go int64, byte 9",
		`{"ready":1}`:                    "codec: value does not fit: JSON number, Go bool, byte 9",
		`["Berlin"]`:                     "codec: value does not fit: JSON array, Go codec_test.item, byte 0",
		`{"name":{"Berlin":1}} junk`:     "codec: value does not fit: JSON object, Go string, byte 8",
		deep:                             "codec: value nested too deep",
	} {
		d := c.Unmarshal([]byte(text))
		require.EqualError(t, d.Err, want, "%.80q", text)
		require.Zero(t, d.Value)
		require.Equal(t, text, string(d.Raw))
	}
}

func TestJSONWritesCompactOrderedText(t *testing.T) {
	raw, err := codec.JSON[order]().Marshal(orders()[1])
	require.NoError(t, err)
	require.Equal(t, `{"id":"o-1","items":[{"name":"pen","count":9223372036854775807,"ready":true},`+
		`{"name":"ink","count":-1,"ready":false}],"tags":{"a":"1","b":"2"},`+
		`"note":"naïve <b>&</b> `+"\u2028"+` \u0000 \"quoted\"","price":0.1,"extra":{"z":1.10},"cells":[1,255],`+
		`"rates":{"x":1e+300}}`, string(raw))
}

func TestJSONReturnsErrorForUnsupportedValues(t *testing.T) {
	_, err := codec.JSON[float64]().Marshal(math.NaN())
	require.ErrorIs(t, err, codec.ErrMismatch)
	_, err = codec.JSON[string]().Marshal("Berlin\xff")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "Berlin")
	_, err = codec.JSON[chan int]().Marshal(nil)
	require.ErrorIs(t, err, codec.ErrMismatch)
	_, err = codec.JSON[any]().Marshal(nestedArrays(codec.MaxDepth + 1))
	require.ErrorIs(t, err, codec.ErrDepth)
	raw, err := codec.JSON[any]().Marshal(nestedArrays(codec.MaxDepth))
	require.NoError(t, err)
	require.NoError(t, codec.JSON[any]().Unmarshal(raw).Err)
}

func nestedArrays(depth int) any {
	value := []any{}
	for range depth - 1 {
		value = []any{value}
	}
	return value
}

func TestDepthIsCountedInTheFirstValueOnly(t *testing.T) {
	at := strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth)
	over := "[" + at + "]"
	wide := "[" + strings.Repeat("{},", 2*codec.MaxDepth) + "{}]"
	for text, want := range map[string]error{
		at: nil, over: codec.ErrDepth, wide: nil, " \n" + over: codec.ErrDepth,
		at + over: nil, "1" + over: nil, `"` + over + `"`: nil, over[:codec.MaxDepth+1]: codec.ErrDepth,
		`["` + over + `"]`: nil, `["\"` + over + `\\"]`: nil, `["\\",` + over + `]`: codec.ErrDepth, `["` + over: nil,
		strings.Repeat(" ", 2*codec.MaxDepth): nil, "": nil,
	} {
		require.ErrorIs(t, codec.CheckDepth([]byte(text)), want, "%.20q", text)
	}
}

func TestJSONCauseDoesNotQuoteTheInput(t *testing.T) {
	require.NoError(t, codec.JSONCause(nil))
	require.Equal(t, codec.ErrMismatch, codec.JSONCause(errors.New("Berlin")))
	own := fmt.Errorf("%w: field 3", codec.ErrMismatch)
	require.Equal(t, own, codec.JSONCause(own), "a cause of ours stays")
	inside := jsonv2.Unmarshal([]byte(`{"Berlin":1}`), new(map[string]deepInside))
	require.ErrorIs(t, inside, codec.ErrDepth)
	require.Contains(t, inside.Error(), "Berlin")
	require.Equal(t, codec.ErrDepth, codec.JSONCause(inside))
}

type deepInside struct{}

func (*deepInside) UnmarshalJSON([]byte) error { return codec.ErrDepth }
