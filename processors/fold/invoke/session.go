package invoke

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// HeaderSession is the header with the session id, in requests and responses.
const HeaderSession = "X-Ag-Session-Id"

// baggageSession is the entry of the baggage header with the session id.
const baggageSession = "ag.session.id"

// maxSession is the maximum length of a session id, in bytes.
const maxSession = 128

var (
	errSessionType = errors.New("session_id: want a string")
	errSession     = errors.New("session id: want 1 to 128 of letters, digits, dot, underscore, colon and hyphen")
)

// sessionOf returns the session id of the body, or else of the header, or else of the baggage; empty for none.
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

// fromBaggage returns the session id of a baggage header, percent-decoded and without properties.
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
