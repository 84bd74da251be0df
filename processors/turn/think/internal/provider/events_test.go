package provider

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// held is a stream whose server does not close the connection.
type held struct {
	io.Reader
	t *testing.T
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err == io.EOF {
		h.t.Error("the stream is read after its end")
	}
	return n, err
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"events":               {"data: a\n\ndata: b\n\n", []string{"a\n", "b\n"}},
		"CRLF":                 {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a\n", "b\n"}},
		"comments":             {": ping\n\n:\ndata: a\n: ping\n\n", []string{"a\n"}},
		"no space":             {"data:a\n\ndata:  b\n\n", []string{"a\n", " b\n"}},
		"several lines":        {"data: {\ndata: }\n\n", []string{"{\n}\n"}},
		"other fields":         {"event: x\nid: 1\nretry: 5\ndatum: y\ndata: a\n\n", []string{"a\n"}},
		"no empty line at end": {"data: a\n\ndata: b\n", []string{"a\n"}},
		"no line break at end": {"data: a\n\ndata: [DONE]", []string{"a\n"}},
		"data after the end":   {"data: a\n\ndata: [DONE]\n\ndata: b\n\n", []string{"a\n"}},
		"nothing":              {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for data, err := range Events(strings.NewReader(c.stream)) {
				require.NoError(t, err)
				got = append(got, string(data))
			}
			require.Equal(t, c.want, got)
		})
	}
	t.Run("held connection", func(t *testing.T) {
		for data := range Events(held{strings.NewReader("data: a\n\ndata:[DONE]\n"), t}) {
			require.Equal(t, "a\n", string(data))
		}
	})
	t.Run("line that is too long", func(t *testing.T) {
		var last error
		for _, err := range Events(strings.NewReader("data: " + strings.Repeat("x", maxLine))) {
			last = err
		}
		require.Error(t, last)
	})
}
