package entrance

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/auth"
)

// Request is a request and its visit.
type Request struct {
	*http.Request
	*Visit
	W     http.ResponseWriter
	Parts []string // of the path: what the * of the route stand for
	Body  []byte   // for the door
}

// Limit returns how many entries a request wants, at most most: its parameter limit, or unset. ok is false if that is no number above 0.
func (r *Request) Limit(unset, most int) (n int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return unset, true
	}
	n, err := strconv.Atoi(text)
	return min(n, most), err == nil && n > 0
}

// Route is what a method and a path stand for. A * of the path stands for one part that is not empty. http.ServeMux is not used
// because it redirects requests whose parts are "." or "..", or have a "/".
type Route struct {
	Method, Path string
	Rights       auth.Rights
	Serve        func(*Request) Answer
}

// Find returns the route of a method and of what an escaped path has behind a prefix, and what its * stand for. The first path that
// fits counts. known is false if there is none. If the path has other methods only, the route has no Serve.
func Find(routes []Route, prefix, method, escaped string) (rt Route, parts []string, known bool) {
	rest, ok := strings.CutPrefix(escaped, prefix)
	if !ok {
		return rt, nil, false
	}
	path := strings.Split(rest, "/")
	for i, p := range path {
		text, err := url.PathUnescape(p)
		if err != nil {
			return rt, nil, false
		}
		path[i] = text
	}
	for _, candidate := range routes {
		if known && candidate.Path != rt.Path {
			continue
		}
		if stars, ok := candidate.match(path); ok {
			rt, parts, known = Route{Path: candidate.Path}, stars, true
			if candidate.Method == method {
				return candidate, parts, true
			}
		}
	}
	return rt, parts, known
}

func (rt Route) match(path []string) (stars []string, ok bool) {
	want := strings.Split(rt.Path, "/")
	if len(want) != len(path) {
		return nil, false
	}
	for i, w := range want {
		switch {
		case w == "*" && path[i] != "":
			stars = append(stars, path[i])
		case w != path[i]:
			return nil, false
		}
	}
	return stars, true
}

// Serve answers a request with its route, if its caller has the rights and check accepts it. headers are those of all answers: see
// Answer.Write.
func (e *Entrance) Serve(
	w http.ResponseWriter, r *http.Request, rt Route, parts []string, check func(*Request) (rejection Answer, ok bool), headers ...string,
) {
	v, refusal := e.Open(w, r)
	defer v.Close()
	serve(&Request{Request: r, Visit: v, W: w, Parts: parts}, refusal, rt, check).Write(w, headers...)
}

func serve(r *Request, refusal *Refusal, rt Route, check func(*Request) (rejection Answer, ok bool)) Answer {
	switch {
	case refusal != nil:
		return refusal.Answer()
	case r.Method == http.MethodOptions:
		return Answer{Status: http.StatusNoContent}
	case rt.Serve == nil:
		return Failed(http.StatusMethodNotAllowed, "Method not allowed")
	}
	if refusal := r.Authenticate(rt.Rights); refusal != nil {
		return refusal.Answer()
	}
	if rejection, ok := check(r); !ok {
		return rejection
	}
	return rt.Serve(r)
}
