package permission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestP15_PreviewsOfPermissionRequests(t *testing.T) {
	for args, want := range map[string]string{
		"": "{}", "null": "{}", `"text"`: "{}", "[1]": "{}", "5": "{}", "{": "{}", "{}": "{}",
		`{"path":"a","n":1}`: "{\n  \"path\": \"a\",\n  \"n\": 1\n}",
	} {
		require.Equal(t, want, indented(topics.Raw(args)), args)
	}
	const frame = len("{\n  \"a\": \"\"\n}")
	of := func(text string) string { return indented(topics.Raw(`{"a":"` + text + `"}`)) }
	fits := of(strings.Repeat("x", 400-frame))
	require.Len(t, fits, 400)
	require.NotContains(t, fits, "…")
	whole := "{\n  \"a\": \"" + strings.Repeat("x", 401-frame) + "\"\n}"
	require.Equal(t, whole[:400]+"\n…", of(strings.Repeat("x", 401-frame)))
	require.Equal(t, 402, len([]rune(of(strings.Repeat("é", 1000)))), "400 characters, a newline and an ellipsis")

	for name, want := range map[string]string{
		"fs/read_text_file": "file", "fs/x": "file", "write_file": "file", "my file": "file",
		"terminal/create": "terminal", "run_command": "terminal", "Bash": "shield", "": "shield", "xfs/": "shield",
	} {
		require.Equal(t, want, icon(name), name)
	}
	for _, c := range []struct{ name, args, summary string }{
		{"fs/write_text_file", `{"path":"a","command":"b"}`, "a"},
		{"fs/write_text_file", `{"command":"b"}`, "b"},
		{"terminal/create", `{"path":"a","command":"b"}`, "b"},
		{"terminal/create", `{"path":"a"}`, "a"},
		{"Bash", `{"path":"a","command":"b"}`, "b"},
		{"Bash", `{"path":"a"}`, "a"},
		{"Bash", `{"path":5}`, ""},
		{"Bash", `{}`, ""},
		{"Bash", ``, ""},
	} {
		require.Equal(t, c.summary, summary(topics.Raw(c.args), c.name), c)
	}
}
