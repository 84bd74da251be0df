package entrance

import (
	"net/http"
	"slices"
)

// AnyOrigin is the name of all origins in CORS.
const AnyOrigin = "*"

// CORS is what a browser lets scripts of the pages of a door's Origins do.
type CORS struct {
	// Methods are those of requests. Without them the entrance sends no headers of CORS.
	Methods string
	// Headers are those of requests besides Content-Type and auth.Door.Headers.
	Headers []string
	// Exposed are the headers of responses that scripts may read.
	Exposed string
}

// setCORS sets the headers of CORS of the response to a request.
func (e *Entrance) setCORS(w http.ResponseWriter, r *http.Request) {
	c := e.config
	if len(c.Origins) == 0 || c.CORS.Methods == "" {
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
	h.Set("Access-Control-Allow-Methods", c.CORS.Methods)
	h.Set("Access-Control-Allow-Headers", e.headers)
	if c.CORS.Exposed != "" {
		h.Set("Access-Control-Expose-Headers", c.CORS.Exposed)
	}
}
