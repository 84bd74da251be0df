package invoke

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

const question = `{"data":{"inputs":{"messages":[{"role":"user","content":"hi"}]}},"session_id":"s-1"}`

// A client that folds the stream gets the batch.
func TestBatchIsTheFoldOfTheStream(t *testing.T) {
	t.Parallel()
	for _, g := range corpus(t) {
		t.Run(g.ID, func(t *testing.T) {
			s := newSite(t, g.script())
			batch := s.invoke(question)
			streamed := s.invoke(question, "Accept", "application/x-ndjson")
			frames := s.invoke(question, "Accept", "text/event-stream")
			trimmed := s.invoke(`{"flags":{"trim":true}}`)
			require.Equal(t, http.StatusOK, streamed.status)
			require.Equal(t, http.StatusOK, frames.status)
			if g.Error {
				require.Equal(t, http.StatusInternalServerError, batch.status)
				return
			}
			require.Equal(t, http.StatusOK, batch.status, batch.body)

			fromLines, fromFrames := folded(t, lines(streamed.body)), folded(t, eventFrames(frames.body))
			outputs := at(t, batch.body, "data", "outputs")
			require.Equal(t, compacted(outputs), compacted(fromLines.AppendEnvelope(nil)))
			require.Equal(t, compacted(outputs), compacted(fromFrames.AppendEnvelope(nil)))
			require.Equal(t, compacted(g.Batch), compacted(fromLines.AppendJSON(nil)))

			fromLines.Messages = folder.Trim(fromLines.Messages)
			require.Equal(t, compacted(at(t, trimmed.body, "data", "outputs")), compacted(fromLines.AppendEnvelope(nil)))
		})
	}
}

func TestDoorAnswersTheSameUnderAnyPath(t *testing.T) {
	t.Parallel()
	for _, g := range corpus(t) {
		s := newSite(t, g.script())
		for _, headers := range [][]string{
			nil,
			{"Accept", "application/x-ndjson"},
			{"Accept", "text/event-stream"},
			{"Accept", "text/event-stream", HeaderFormat, "vercel"},
			{HeaderFormat, "vercel"},
			{HeaderTranscript, "last"},
			{HeaderControl, "force"},
			{"Accept", "application/json", "X-Stream", "true"},
		} {
			body := question
			if len(headers) > 2 && headers[2] == "X-Stream" {
				body = `{"flags":{"stream":true}}`
			}
			root, mounted := s.invoke(body, headers...), s.mounted(body, headers...)
			root.header.Del("Date")
			mounted.header.Del("Date")
			require.Equal(t, root, mounted, "%s %v", g.ID, headers)
		}
	}
}

// folded folds a stream as a client does: it ignores unknown events.
func folded(t *testing.T, raw []string) folder.Batch {
	t.Helper()
	f := folder.NewFolder()
	for _, r := range raw {
		e, err := folder.DecodeEvent(topics.Raw(r))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	b, err := f.Batch(folder.End{})
	require.NoError(t, err)
	return b
}

// eventFrames are the data of server-sent events.
func eventFrames(body string) []string {
	var list []string
	for frame := range strings.SplitSeq(body, "\n\n") {
		for line := range strings.SplitSeq(frame, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				list = append(list, data)
			}
		}
	}
	return list
}

func compacted(v []byte) string { return string(respace(nil, v, false)) }
