package examples

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

const corpus = "../../../processors/fold/folder/testdata/turns.jsonl"

func filter(t *testing.T, in io.Reader, args ...string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, run(deadline(t), "invoke", append([]string{"fold"}, args...), in, &out, &errs), &errs)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// rawValues makes json.Unmarshal copy values into topics.Raw fields byte for byte.
var rawValues = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *topics.Raw) error {
	v, err := d.ReadValue()
	*to = bytes.Clone(v)
	return err
}))

func TestFilterFoldsTheCorpus(t *testing.T) {
	turns, err := os.ReadFile(corpus)
	require.NoError(t, err)
	folded := filter(t, bytes.NewReader(turns))
	strict := filter(t, iotest.OneByteReader(bytes.NewReader(turns)), "-strict")
	for line := range bytes.Lines(turns) {
		var want, got struct {
			ID            string     `json:"id"`
			Batch         topics.Raw `json:"batch"`
			Trimmed       topics.Raw `json:"trimmed"`
			AssistantText string     `json:"assistant_text"`
		}
		var golden struct {
			StrictError bool `json:"strict_error"`
			Error       bool `json:"error"`
		}
		loose := json.JoinOptions(rawValues, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		require.NoError(t, json.Unmarshal(line, &want, loose))
		require.NoError(t, json.Unmarshal(line, &golden, loose))
		if golden.Error {
			require.Regexp(t, `^{"id":"`+want.ID+`","error":".+"}$`, folded[0])
		} else {
			require.NoError(t, json.Unmarshal([]byte(folded[0]), &got, loose))
			require.Equal(t, want, got)
		}
		if golden.Error || golden.StrictError {
			require.Contains(t, strict[0], `"error":`)
		} else {
			require.Equal(t, folded[0], strict[0])
		}
		folded, strict = folded[1:], strict[1:]
	}
	require.Empty(t, folded)
	require.Empty(t, strict)
}

func TestFilterContinuesAfterInvalidLines(t *testing.T) {
	got := filter(t, strings.NewReader(strings.Join([]string{
		`{"id":1,"events":[NaN]}`,
		`not JSON`,
		``,
		`[1]`,
		`{"id":"x"}`,
		`{"id":"y","events":null}`,
		"{\"id\":\"utf\xff8\",\"events\":[]}",
		`{"id":{"a":1.0},"events":[],"stop_reason":null} `,
		`{"id":2,"events":[]} {}`,
		`{"events":[],"stop_reason":"end_turn"}`,
		"{\"id\":[1,\r2],\"events\":{}}",
		"{\"id\":3,\"events\":[{\"type\":\"message\",\"text\":\"\r\"}]}",
		`{"events":["NaN\"",-Infinity],"id":"NaN","stop_reason":null}`,
		`{"events":[NaN]],"id":4}`,
		"{\"events\":[\"\xff\"],\"id\":5}",
	}, "\n")))
	require.Equal(t, []string{
		`{"id":1,"error":"the line has NaN or an infinity, which JSON does not have"}`,
		`{"id":null,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":null,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":"x","error":"the turn has no events"}`,
		`{"id":"y","error":"fold: events are not a JSON array"}`,
		`{"id":null,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":{"a":1.0},"batch":{"messages":[],"stop_reason":null,"pending_interaction":null},"trimmed":[],` +
			`"assistant_text":""}`,
		`{"id":2,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":null,"batch":{"messages":[],"stop_reason":"end_turn","pending_interaction":null},"trimmed":[],` +
			`"assistant_text":""}`,
		`{"id":[1, 2],"error":"fold: events are not a JSON array"}`,
		`{"id":3,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":"NaN","error":"the line has NaN or an infinity, which JSON does not have"}`,
		`{"id":null,"error":"the line is not a JSON object in UTF-8"}`,
		`{"id":5,"error":"the line is not a JSON object in UTF-8"}`,
	}, got)
}

func TestFilterAnswersBeforeTheNextLineEnds(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(deadline(t), "invoke", []string{"fold"}, in, out, io.Discard)
		_ = out.Close()
	}()
	r := bufio.NewReader(answers)
	for _, piece := range []string{
		"{\"id\":1,\"events\":[]}\n",
		"{\"id\":2,\"events\":[]}\n\n{\"id\"",
		":3,\"events\":[]}\r\n{",
	} {
		_, err := io.WriteString(ask, piece)
		require.NoError(t, err)
		answer, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, answer, `"batch":`)
	}
	require.NoError(t, ask.Close())
	answer, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, answer, `"error":`)
	require.Zero(t, <-done)
}

func TestFilterAcceptsLinesOfAnyLengthAndSplitsOnLineFeedsOnly(t *testing.T) {
	text := strings.Repeat("\u2028\u0085x", 1<<20)
	got := filter(t, strings.NewReader(`{"id":1,"events":[{"type":"message","data":{"text":"`+text+`"}}]}`+"\r\n"))
	require.Len(t, got, 1)
	require.Contains(t, got[0], `"assistant_text":"`+text+`"}`)
}
