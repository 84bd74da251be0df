package topics

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/codec"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

// unmarshalLeniently decodes a record without trying the strict decoder first.
func unmarshalLeniently[T any](f wire[T], record []byte) (v T, err error) {
	var none T
	if len(record) == 0 {
		return none, ErrEmpty
	}
	value, err := readLeniently(record, func(c *cursor) error { return f.read(c, &v) })
	switch {
	case !utf8.Valid(value):
		return none, ErrUTF8
	case codec.Deeper(value, f.depth):
		return none, ErrDepth
	case err != nil:
		return none, err
	}
	return v, nil
}

// requireSameResult requires that Unmarshal and unmarshalLeniently return the same value and error.
func requireSameResult[T any](t require.TestingT, f wire[T], record []byte) {
	want, wantErr := unmarshalLeniently(f, record)
	got, err := f.Unmarshal(record)
	require.Equal(t, wantErr, err, "%q", record)
	require.Equal(t, want, got, "%q", record)
}

// mangled draws a record with some of its bytes replaced.
func mangled(r *rapid.T, samples [][]byte) []byte {
	record := string(rapid.SampledFrom(samples).Draw(r, "record"))
	for range rapid.IntRange(0, 3).Draw(r, "changes") {
		from := rapid.IntRange(0, len(record)).Draw(r, "from")
		to := min(len(record), from+rapid.IntRange(0, 3).Draw(r, "bytes"))
		record = record[:from] + rapid.SampledFrom([]string{
			``, `"`, `\`, `\n`, `\ud83d`, `\ud83d\ude00`, `\u00e9`, "\xff", "é", "\x01", `{`, `}`, `[`, `]`, `[]`, `,`, `:`,
			`null`, `true`, `5`, `1e3`, `-`, ` `, `"a"`, `{"a":[null]}`, strings.Repeat(`[`, MaxDepth),
		}).Draw(r, "by") + record[to:]
	}
	return []byte(record)
}

func TestStrictAndLenientDecodingAgree(t *testing.T) {
	check := func(t *testing.T, samples [][]byte, require func(require.TestingT, []byte)) {
		rapid.Check(t, func(r *rapid.T) { require(r, mangled(r, samples)) })
	}
	t.Run("think-response", func(t *testing.T) {
		check(t, records(t, "think-request-response"), func(t require.TestingT, record []byte) {
			requireSameResult(t, thinkWire, record)
		})
	})
	t.Run("message", func(t *testing.T) {
		check(t, records(t, "message-input"), func(t require.TestingT, record []byte) {
			requireSameResult(t, messageWire, record)
		})
	})
	t.Run("tool results", func(t *testing.T) {
		check(t, records(t, "tool-use-all-complete"), func(t require.TestingT, record []byte) {
			requireSameResult(t, toolResultsWire, record)
		})
	})
	t.Run("output", func(t *testing.T) {
		check(t, records(t, "message-output"), func(t require.TestingT, record []byte) {
			requireSameResult(t, outputWire, record)
		})
	})
}

// TestLenientDecodingDiscardsTheStrictResult uses records with a lone surrogate at the end, where the strict decoder has already
// decoded nearly everything.
func TestLenientDecodingDiscardsTheStrictResult(t *testing.T) {
	lone := `"cut \ud83d"`
	v := good(t, harbor(t).ThinkRequestResponse.Codec(),
		`{"tool_uses":[{"name":"a"},null],"end_turn":true,"end_turn":false,"timestamp":`+lone+`}`)
	require.Len(t, v.ToolUses, 1)
	require.Equal(t, []int{1}, v.NullToolUses)
	require.Equal(t, 4, v.Known)

	elements, err := Elements(Raw(`[1,` + lone + `]`))
	require.NoError(t, err)
	require.Len(t, elements, 2)
	require.Equal(t, "a\n\ncut \ufffd", Text(Raw(`["a",`+lone+`]`)))
	require.Equal(t, `{"a":`+lone+`}`, string(WithoutReplyTo(Raw(`{"a":`+lone+`}`))))
	_, ok := Lookup(Raw(`{"a":1,"b":"\ud83d}`), "a")
	require.False(t, ok)
}

func TestShortTextsShareMemoryAndLongOnesDoNot(t *testing.T) {
	var short texts
	long := strings.Repeat("x", longestShared+1)
	require.Equal(t, 5.0, testing.AllocsPerRun(100, func() {
		short = texts{}
		for range pointeeGroup {
			short.pointer([]byte("0123456789"), blockSize)
		}
		short.pointer([]byte(long), blockSize) // two allocations: the text and the pointee
		short.word([]byte(long), blockSize)
	}))
	var pointers []*string
	for i := range 3 * pointeeGroup {
		pointers = append(pointers, short.pointer([]byte(strings.Repeat(string(rune('a'+i)), 10)), blockSize))
	}
	for i, p := range pointers {
		require.Equal(t, strings.Repeat(string(rune('a'+i)), 10), *p, "unchanged by later texts")
	}
	require.LessOrEqual(t, short.block.Cap(), 2*blockSize)
}

// formatted returns the canonical form by formatting every value, without the shortcut for canonical values.
func formatted(v Raw) []byte {
	c := jsontext.Value(appendRaw(nil, v))
	err := c.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawFloats(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return v
	}
	return c
}

func TestCanonicalAgreesWithTheFormatter(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			`\n`, `\t`, `\"`, `\\`, `\/`, `\b`, `\f`, `\r`, `\u0001`, `\u000a`, `\u000A`, `\u001f`, `\u0041`, `\ud83d`,
			`\ud83d\ude00`, `\u`, `\x`, `\`, `"`, "\x00", "\x1f", "\x7f", "\x80", "\xff", "\xed\xa0\x80", "é", "\u2028",
			"\ufffd", "😀", "<", ">", "&", "/", "'", " ", "\n", "a", `{"b":1,"a":2}`, `[`, `,`, `1.0`, `null`,
		}),
		rapid.StringN(0, 3, -1),
	)
	rapid.Check(t, func(r *rapid.T) {
		v := Raw(strings.Join(rapid.SliceOfN(part, 0, 6).Draw(r, "parts"), ""))
		for _, v := range []Raw{v, Raw(`"` + string(v) + `"`), Raw(`["` + string(v) + `"]`), nil} {
			require.Equal(r, string(formatted(v)), string(canonical(v)), "%q", v)
		}
	})
	value := rapid.StringOfN(rapid.RuneFrom([]rune(`{}[]:,"\abnu0123456789-.eE nulltruefalse`)), 0, 12, -1)
	rapid.Check(t, func(r *rapid.T) {
		v := Raw(value.Draw(r, "value"))
		require.Equal(r, string(formatted(v)), string(canonical(v)), "%q", v)
	})
	rapid.Check(t, func(r *rapid.T) {
		v := Raw(anyJSON(3).Draw(r, "json"))
		require.Equal(r, string(formatted(v)), string(canonical(v)), "%q", v)
	})
	for text, want := range map[string]bool{
		`""`: true, `"a"`: true, `"é😀 \n\t\"\\"`: true, `"`: false, `"a\"`: false, `"a"b"`: false, `"\/"`: false,
		`"\u0041"`: false, "\"\n\"": false, "\"\xff\"": false, ``: false,
		`5`: true, `0`: true, `-5`: true, `-0`: false, `-`: false, `05`: false, `1.0`: false, `1e2`: false, `null`: true,
		`true`: true, `123456789012345`: true, `1234567890123456`: false, ` 5`: false, `5 `: false,
		`{}`: true, `[]`: true, `{"a":1,"b":[null,"x"],"ba":{}}`: true, `{"b":1,"a":2}`: false, `{"a":1,"a":2}`: false,
		`{"":1,"a":2}`: true, `{"é":1}`: false, `{"\"":1}`: false, `{"a": 1}`: false, `[1, 2]`: false, `[1,2`: false,
		`[1`: false, `[`: false, `{"a"`: false, `{"a":`: false, `{"a":1`: false, `{"a":1,`: false, `[1}`: false, `[1]]`: false,
		strings.Repeat(`[`, checkedDepth) + strings.Repeat(`]`, checkedDepth):     true,
		strings.Repeat(`[`, checkedDepth+2) + strings.Repeat(`]`, checkedDepth+2): false,
	} {
		require.Equal(t, want, isCanonical(Raw(text)), "%q", text)
	}
}

// anyJSON draws JSON values, of which many, but not all, are canonical.
func anyJSON(depth int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-0`, `7`, `-12`, `1.0`, `1.5`, `1e2`, `123456789012345`, `12345678901234567890`, `""`,
		`"a"`, `"é"`, `"\u0041"`, `"\n"`, `"😀\\"`,
	})
	if depth == 0 {
		return scalar
	}
	name := rapid.SampledFrom([]string{`""`, `"a"`, `"ab"`, `"b"`, `"c"`, `"B"`, `"\n"`, `"é"`, `"😀"`, `"\uffff"`, "\"\uffff\""})
	space := rapid.SampledFrom([]string{``, ``, ``, ``, ` `})
	return rapid.Custom(func(r *rapid.T) string {
		var list []string
		object := rapid.Bool().Draw(r, "object")
		for range rapid.IntRange(0, 3).Draw(r, "members") {
			v := rapid.OneOf(scalar, anyJSON(depth-1)).Draw(r, "value")
			if object {
				v = name.Draw(r, "name") + `:` + space.Draw(r, "space") + v
			}
			list = append(list, v)
		}
		if object {
			return `{` + strings.Join(list, `,`) + `}`
		}
		return `[` + strings.Join(list, `,`+space.Draw(r, "space")) + `]`
	})
}

func TestEncodedRecordsShareNoMemory(t *testing.T) {
	small := EncodeMessage(Message{Content: Raw(`"first"`)})
	EncodeMessage(Message{Content: Raw(`"other"`)})
	require.Contains(t, string(small), "first")
	for _, size := range []int{10, largest - 200, largest, largest + 1, 3 * largest} {
		for range 2 {
			m := Message{Content: Raw(`"` + strings.Repeat("x", size) + `"`)}
			var w writer
			writeMessage(&w, m)
			require.Equal(t, string(w.b), string(EncodeMessage(m)))
		}
	}
	nothing, err := rawWire.Marshal(Raw{})
	require.NoError(t, err)
	require.Nil(t, nothing)
}
