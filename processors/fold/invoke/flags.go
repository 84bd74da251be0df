package invoke

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// The request headers that set a flag which the body does not set. Unknown values are ignored.
const (
	HeaderTranscript = "X-Ag-Messages-Transcript" // last or full: the flag trim
	HeaderControl    = "X-Ag-Session-Control"     // force: the flag force
	HeaderEmbeds     = "X-Ag-Workflow-Embeds"     // resolve: the flag resolve
	HeaderFormat     = "X-Ag-Messages-Format"     // vercel, or canonical
)

// flags are the flags of a request; nil if neither the body nor a header sets one.
type flags struct{ stream, trim, force, resolve *bool }

// readFlags reads the body's flags. A header sets a flag only if the body does not.
func readFlags(body topics.Raw, h http.Header) (flags, error) {
	var f flags
	raw, ok := field(body, "flags")
	if ok && kindOf(raw) != '{' && kindOf(raw) != 'n' {
		return f, fmt.Errorf("flags: want an object")
	}
	for _, known := range []struct {
		name string
		to   **bool
	}{{"stream", &f.stream}, {"trim", &f.trim}, {"force", &f.force}, {"resolve", &f.resolve}} {
		value, ok := field(raw, known.name)
		if !ok {
			continue
		}
		flag, ok := truth(value)
		if !ok {
			return f, fmt.Errorf("flags.%s: want a boolean", known.name)
		}
		*known.to = &flag
	}
	fill := func(to **bool, header string, values map[string]bool) {
		value, ok := values[strings.ToLower(strings.TrimSpace(h.Get(header)))]
		if *to == nil && ok {
			*to = &value
		}
	}
	fill(&f.trim, HeaderTranscript, map[string]bool{"last": true, "full": false})
	fill(&f.force, HeaderControl, map[string]bool{"force": true})
	fill(&f.resolve, HeaderEmbeds, map[string]bool{"resolve": true})
	return f, nil
}

// truth converts a flag's value: a boolean, or one of the usual words for one.
func truth(value topics.Raw) (flag, ok bool) {
	switch kindOf(value) {
	case 't', 'f':
		return kindOf(value) == 't', true
	case '"':
		s, _ := text(value)
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "true", "t", "yes", "y", "on", "1":
			return true, true
		case "false", "f", "no", "n", "off", "0":
			return false, true
		}
	}
	return false, false
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// vercel reports whether a request asks for messages in the Vercel form.
func vercel(h http.Header) bool { return strings.EqualFold(h.Get(HeaderFormat), "vercel") }
