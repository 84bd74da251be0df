package invoke

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// All combinations of Accept, the stream flag and the agent's shape.
func TestMediaTypeDependsOnAcceptFlagAndShape(t *testing.T) {
	const (
		json, nd, sse = "200 application/json", "200 application/x-ndjson", "200 text/event-stream; charset=utf-8"
		no            = "406 application/json"
	)
	agents := []Capability{{}, {Shape: BatchOnly, FlagBlind: true}, {Shape: StreamOnly, FlagBlind: true}}
	none := []string{"", "*/*", "text/html", "text/*", "application/xml;q=0.9, */*;q=0.1"}
	lines := []string{"application/x-ndjson", "application/jsonl", "Application/X-NDJSON;q=0.5"}
	for _, row := range []struct {
		accept []string
		stream string
		want   [3]string
	}{
		{none, "", [3]string{json, json, nd}},
		{none, "true", [3]string{nd, json, nd}},
		{none, "false", [3]string{json, json, nd}},
		{[]string{"application/json"}, "", [3]string{json, json, no}},
		{[]string{"application/json"}, "false", [3]string{json, json, no}},
		{[]string{"application/json"}, "true", [3]string{no, json, no}},
		{[]string{"text/event-stream"}, "", [3]string{sse, no, sse}},
		{[]string{"text/event-stream"}, "true", [3]string{sse, no, sse}},
		{[]string{"text/event-stream"}, "false", [3]string{no, no, sse}},
		{lines, "", [3]string{nd, no, nd}},
		{lines, "true", [3]string{nd, no, nd}},
		{lines, "false", [3]string{no, no, nd}},
	} {
		body := `{}`
		if row.stream != "" {
			body = `{"flags":{"stream":` + row.stream + `}}`
		}
		for i, capability := range agents {
			agent := scripted(t, hello)
			agent.capability = capability
			s := newSite(t, agent)
			for _, accept := range row.accept {
				var headers []string
				if accept != "" {
					headers = []string{"Accept", accept}
				}
				before := len(agent.requests)
				a := s.invoke(body, headers...)
				require.Equal(t, row.want[i], a.kind(), "%v %q %s", capability, accept, body)
				if a.status == http.StatusNotAcceptable {
					require.Len(t, agent.requests, before, "what is refused does not run")
				}
				require.Equal(t, a.body, s.mounted(body, headers...).body, "the mounted door")
			}
		}
	}
}

// Cases that the reference decides by the order of its search or decides incorrectly.
func TestTypeWithTheHighestQualityIsChosen(t *testing.T) {
	for accept, want := range map[string]string{
		"text/event-stream, application/json":            "text/event-stream; charset=utf-8",
		"application/json, text/event-stream;q=0.5":      "application/json",
		"application/json, application/x-ndjson;q=0":     "application/json",
		"application/json;q=0, */*":                      "application/x-ndjson",
		"text/event-stream, application/x-ndjson":        "application/x-ndjson",
		"application/jsonl, text/event-stream":           "application/x-ndjson",
		"text/event-stream, application/jsonl":           "text/event-stream; charset=utf-8",
		"application/json-seq":                           "application/json",
		`application/json;v="a,text/event-stream";q=0.9`: "application/json",
		"application/json;q=abc, text/event-stream;q=.3": "text/event-stream; charset=utf-8",
		"TEXT/Event-Stream ; Q=0.3":                      "text/event-stream; charset=utf-8",
		",,;q=1,/,*":                                     "application/json",
	} {
		a := newSite(t, scripted(t, hello)).invoke(`{}`, "Accept", accept)
		require.Equal(t, http.StatusOK, a.status, accept)
		require.Equal(t, want, a.header.Get("Content-Type"), accept)
	}
	batch := scripted(t, hello)
	batch.capability.Shape = BatchOnly
	a := newSite(t, batch).invoke(`{}`, "Accept", "text/event-stream, application/json;q=0.1")
	require.Equal(t, http.StatusOK, a.status, "the client takes a batch too")
	stream := scripted(t, hello)
	stream.capability.Shape = StreamOnly
	require.Equal(t, http.StatusOK, newSite(t, stream).invoke(`{}`, "Accept", "application/json, */*;q=0.1").status)
	require.Equal(t, http.StatusNotAcceptable, newSite(t, batch).invoke(`{}`, "Accept", "application/json;q=0").status)
}

func TestUnsupportedMediaTypeIsNotAcceptable(t *testing.T) {
	s := newSite(t, scripted(t, hello))
	a := s.invoke(`{"flags":{"stream":false}}`, "Accept", "text/event-stream")
	require.Equal(t, `{"detail":"The agent does not answer with text/event-stream to this request.",`+
		`"requested":"text/event-stream","supported":["application/json"],"trace_id":"`+traceID+`","span_id":"`+spanID+`"}`,
		a.body)
	require.Empty(t, a.header.Get(HeaderSession))
	require.Empty(t, a.header.Get(headerVersion))
	a = s.invoke(`{"flags":{"stream":true}}`, "Accept", "application/json", HeaderFormat, "vercel")
	require.Equal(t, `["application/jsonl","application/x-ndjson","text/event-stream"]`,
		string(at(t, a.body, "supported")))
	require.Empty(t, a.header.Get(HeaderFormat))
	a = s.invoke(`{"flags":{"stream":true,"trim":true}}`, "Accept", "application/json", HeaderTranscript, "last")
	require.Equal(t, http.StatusNotAcceptable, a.status, "trim rescues nothing")
}

// The flag force is rejected before the agent runs, in every form, by agents that know it.
func TestForceFlagIsRejected(t *testing.T) {
	for _, c := range []struct {
		capability Capability
		refused    bool
	}{
		{Capability{}, true},
		{Capability{Shape: BatchOnly}, true},
		{Capability{Shape: BatchOnly, FlagBlind: true}, false},
		{Capability{Shape: StreamOnly}, false},
		{Capability{FlagBlind: true}, false},
	} {
		for _, request := range []struct{ body, header string }{
			{`{"flags":{"force":true}}`, ""},
			{`{}`, "force"},
			{`{}`, " FORCE "},
			{`{"flags":{"force":"true"}}`, "x"},
			{`{"flags":{"force":true,"stream":false}}`, ""},
		} {
			agent := scripted(t, hello)
			agent.capability = c.capability
			a := newSite(t, agent).invoke(request.body, HeaderControl, request.header, "Accept", "*/*")
			if !c.refused {
				require.Equal(t, http.StatusOK, a.status)
				continue
			}
			require.Equal(t, http.StatusNotAcceptable, a.status)
			require.Equal(t, TypeForceNotSupported, textAt(t, a.body, "status", "type"))
			require.Equal(t, "flags.force is not supported yet", textAt(t, a.body, "status", "message"))
			require.NotEmpty(t, a.header.Get(HeaderSession))
			require.Empty(t, agent.requests)
		}
	}
	agent := scripted(t, hello)
	s := newSite(t, agent)
	require.Equal(t, http.StatusOK, s.invoke(`{"flags":{"force":false}}`, HeaderControl, "force").status, "the body wins")
	require.Equal(t, http.StatusOK, s.invoke(`{}`, HeaderControl, "gently").status)
	a := s.invoke(`{"flags":{"force":true,"stream":false}}`, "Accept", "text/event-stream")
	require.Equal(t, TypeForceNotSupported, textAt(t, a.body, "status", "type"), "an error beats a refusal")
}

// A header sets a flag that the body does not set.
func TestHeaderSetsAFlagThatTheBodyLacks(t *testing.T) {
	yes, no := true, false
	resolved := 0
	agent := scripted(t, hello)
	s := newSite(t, agent, func(c *Config) {
		c.Resolve = func(_ context.Context, r Request) (Request, error) { resolved++; return r, nil }
	})
	for _, c := range []struct {
		body    string
		headers []string
		want    Flags
		resolve int
	}{
		{`{}`, nil, Flags{}, 1},
		{`{}`, []string{"Accept", "application/json"}, Flags{}, 1},
		{`{}`, []string{"Accept", "text/event-stream"}, Flags{Stream: true}, 1},
		{`{"flags":{}}`, []string{"Accept", "application/jsonl"}, Flags{Stream: true}, 1},
		{`{"flags":{"stream":true}}`, nil, Flags{Stream: true}, 1},
		{`{"flags":{"stream":"yes"}}`, nil, Flags{Stream: true}, 1},
		{`{}`, []string{HeaderTranscript, "full"}, Flags{Trim: &no}, 1},
		{`{}`, []string{HeaderTranscript, " Last "}, Flags{Trim: &yes}, 1},
		{`{}`, []string{HeaderTranscript, "bogus"}, Flags{}, 1},
		{`{"flags":{"trim":false}}`, []string{HeaderTranscript, "last"}, Flags{Trim: &no}, 1},
		{`{"flags":{"trim":true}}`, []string{HeaderTranscript, "full"}, Flags{Trim: &yes}, 1},
		{`{"flags":{"force":false}}`, []string{HeaderControl, "force"}, Flags{Force: &no}, 1},
		{`{}`, []string{HeaderEmbeds, "resolve"}, Flags{}, 1},
		{`{}`, []string{HeaderEmbeds, "bogus"}, Flags{}, 1},
		{`{"flags":{"resolve":false}}`, []string{HeaderEmbeds, "resolve"}, Flags{}, 0},
		{`{"flags":{"resolve":"false","unknown":7}}`, nil, Flags{}, 0},
		{`{"flags":null}`, nil, Flags{}, 1},
	} {
		resolved = 0
		require.Equal(t, http.StatusOK, s.invoke(c.body, c.headers...).status, c.body)
		require.Equal(t, c.want, agent.requests[len(agent.requests)-1].Flags, "%s %v", c.body, c.headers)
		require.Equal(t, c.resolve, resolved, "%s %v", c.body, c.headers)
	}
}

func TestTrimAppliesToBatchesOnly(t *testing.T) {
	agent := scripted(t, `{"type":"message","data":{"text":"a"}}`+"\n"+`{"type":"message","data":{"text":"b"}}`)
	s := newSite(t, agent)
	const last = `[{"role":"assistant","content":"b"}]`
	require.Equal(t, last, string(at(t, s.invoke(`{}`, HeaderTranscript, "last").body, "data", "outputs", "messages")))
	require.Contains(t, s.invoke(`{}`, HeaderTranscript, "full").body, `"content":"a"`)
	require.Contains(t, s.invoke(`{"flags":{"trim":true}}`, "Accept", "application/x-ndjson").body, `"text": "a"`)
	agent.capability = Capability{Shape: BatchOnly, FlagBlind: true}
	require.Contains(t, newSite(t, agent).invoke(`{"flags":{"trim":true}}`).body, `"content":"a"`)
}
