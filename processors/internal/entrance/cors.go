package entrance

import (
	"net/http"
	"slices"
)

// AnyOrigin is the name of all origins in CORS.
const AnyOrigin = "*"

// CORS is which pages of other origins a browser lets use the door.
type CORS struct {
	// Origins are origins, or AnyOrigin alone. Scripts of named origins may send cookies.
	Origins []string
	// Methods, Headers and Exposed are lists for the headers of CORS: the methods and the headers of requests, and the
	// headers of responses that scripts may read.
	Methods, Headers, Exposed string
}

// Set sets the headers of the response to a request.
func (c CORS) Set(w http.ResponseWriter, r *http.Request) {
	if len(c.Origins) == 0 {
		return
	}
	h := w.Header()
	switch origin := r.Header.Get("Origin"); {
	case slices.Contains(c.Origins, AnyOrigin):
		h.Set("Access-Control-Allow-Origin", AnyOrigin)
	case slices.Contains(c.Origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Add("Vary", "Origin")
	default:
		h.Add("Vary", "Origin")
		return
	}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set("Access-Control-Allow-Methods", c.Methods)
	set("Access-Control-Allow-Headers", c.Headers)
	set("Access-Control-Expose-Headers", c.Exposed)
}
