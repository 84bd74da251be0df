package codectest

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// The payload that no error may quote.
const (
	secret       = "Tr0ub4dor-and-3"
	secretNumber = "918273645918273645918273645"
)

// deep is a nesting depth beyond the limit of every known decoder.
const deep = 10_000

// garbled returns bytes that few codecs decode to a value, among them damaged encodings of the samples. The list is the
// same each time.
func (s suite[T]) garbled(t require.TestingT) [][]byte {
	all := hostile()
	for _, sample := range s.samples {
		all = append(all, broken(s.encode(t, sample))...)
	}
	return all
}

func hostile() [][]byte {
	nested := func(open, inside, shut string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(shut, n)
	}
	texts := []string{
		"", " ", "\n", "\x00", "null", "true", "0", "-", "1e999", `""`, `"`, "{", "[", "{}", "[]", "[[", "}{",
		"nul", "'", "NaN",
		// Text that quotes itself into errors: names, strings, numbers, words, escapes.
		secret, `"` + secret, `"` + secret + `"`, `{"` + secret, `{"` + secret + `"`, `{"` + secret + `":`,
		`{"` + secret + `":1`, `{"` + secret + `":tru}`, `{"` + secret + `":1,"` + secret + `":2}`,
		`{"a":{"` + secret + `":[}}`, `{"a":"` + secret + `"`, `[` + secret + `]`,
		`"\u` + secret + `"`, `"\x` + secret + `"`, `"\ud800` + secret + `"`,
		secretNumber, `"` + secretNumber + `"`, secretNumber + ".", `[` + secretNumber + `e` + secretNumber + `]`,
		// Invalid UTF-8, and UTF-8 encodings of surrogates and byte order marks.
		"\xff", "\"\xff\"", "{\"\xc0\x80" + secret + "\":1}", "\"\xed\xa0\x80\"", "\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00",
		// Deep nesting: arrays, objects, unclosed arrays, Protobuf groups and nested messages.
		nested("[", "", "]", deep), nested(`{"a":`, "1", "}", deep), nested("[", "", "", deep),
		nested("\x0b", "", "\x0c", deep), nested("\x0b", "", "", deep), nested("\x0a", "", "", deep),
		// Protobuf: field zero, endless varints, lengths beyond the end and beyond int.
		"\x00\x00", strings.Repeat("\xff", 64), "\x0a\xff\xff\xff\xff\x0f",
		"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x0a\x20" + secret, "\x0f", "\x0c", "\x08",
		// Long.
		strings.Repeat("a", 1<<20), strings.Repeat("\x00", 1<<20), `"` + strings.Repeat(`\"`, 1<<17),
		strings.Repeat("9", 1<<17),
	}
	all := make([][]byte, len(texts))
	for i, text := range texts {
		all[i] = []byte(text)
	}
	return all
}

var (
	number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	text   = regexp.MustCompile(`"[^"]*"`)
)

// broken returns copies of raw that are truncated, changed or have text inserted, at up to places positions each.
func broken(raw []byte) [][]byte {
	const (
		places = 64
		quoted = `"` + secret + `"`
	)
	var all [][]byte
	join := func(start, end int, with string) []byte {
		return bytes.Join([][]byte{raw[:start], raw[end:]}, []byte(with))
	}
	for place := range min(places, len(raw)) {
		at := place * len(raw) / min(places, len(raw))
		flipped := bytes.Clone(raw)
		flipped[at] ^= 0x81
		all = append(all, bytes.Clone(raw[:at]), bytes.Clone(raw[at:]), flipped,
			join(at, at, secret), join(at, at, quoted))
	}
	for _, with := range []string{quoted, secretNumber, `{` + quoted + `:1}`, `[` + quoted + `]`, "null", "true"} {
		for _, what := range []*regexp.Regexp{number, text} {
			for _, at := range what.FindAllIndex(raw, places) {
				all = append(all, join(at[0], at[1], with))
			}
		}
	}
	return append(all, append(bytes.Clone(raw), secret...), bytes.Repeat(raw, 2))
}
