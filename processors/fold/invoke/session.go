package invoke

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// HeaderSession carries the session id, in a request and in its answer.
const HeaderSession = "X-Ag-Session-Id"

// baggageSession is the entry of the baggage header that carries it too.
const baggageSession = "ag.session.id"

// maxSession is how long a session id may be.
const maxSession = 128

var (
	errSessionType = errors.New("session_id: want a string")
	errSession     = errors.New("session id: want 1 to 128 of letters, digits, dot, underscore, colon and hyphen")
)

// sessionOf is the session id that a request names: its body's, else its header's, else its baggage's; empty for none.
func sessionOf(body topics.Raw, h http.Header) (string, error) {
	var id string
	switch value := member(body, "session_id"); {
	case value != nil:
		var ok bool
		if id, ok = text(value); !ok {
			return "", errSessionType
		}
	case h.Get(HeaderSession) != "":
		id = h.Get(HeaderSession)
	default:
		var ok bool
		if id, ok = fromBaggage(h.Values("Baggage")); !ok {
			return "", nil
		}
	}
	if !validSession(id) {
		return "", errSession
	}
	return id, nil
}

func validSession(id string) bool {
	if len(id) == 0 || len(id) > maxSession {
		return false
	}
	for i := range len(id) {
		switch b := id[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9',
			b == '.', b == '_', b == ':', b == '-':
		default:
			return false
		}
	}
	return true
}

// fromBaggage is the session id among the entries of a baggage header, percent-decoded and without its properties.
func fromBaggage(values []string) (id string, ok bool) {
	for entry := range strings.SplitSeq(strings.Join(values, ","), ",") {
		entry, _, _ = strings.Cut(entry, ";")
		key, value, _ := strings.Cut(entry, "=")
		if strings.TrimSpace(key) != baggageSession {
			continue
		}
		value = strings.TrimSpace(value)
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		return value, value != ""
	}
	return "", false
}
