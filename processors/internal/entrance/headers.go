package entrance

import "net/http"

// The limits of a request's headers. They are above what browsers and proxies send.
const (
	maxTarget     = 8 << 10  // path and query, in bytes
	maxHeader     = 8 << 10  // all values of one header
	maxCredential = 16 << 10 // of Authorization and of Cookie: tokens with many claims
	maxHeaders    = 48 << 10 // names and values of all headers
	maxValues     = 256      // of all headers
)

// checkHeaders checks the size of everything in a request but its body. Nothing may parse a header before.
func checkHeaders(r *http.Request) *Refusal {
	if len(r.URL.Path)+len(r.URL.RawQuery) > maxTarget || len(r.RequestURI) > maxTarget {
		return &Refusal{Status: http.StatusRequestURITooLong, Text: "Request target is too long"}
	}
	total, count := 0, 0
	for name, values := range r.Header {
		size, limit := 0, maxHeader
		if name == "Authorization" || name == "Cookie" {
			limit = maxCredential
		}
		for _, v := range values {
			size += len(v)
		}
		total += size + len(name)*len(values)
		count += len(values)
		if size > limit || total > maxHeaders || count > maxValues {
			return &Refusal{Status: http.StatusRequestHeaderFieldsTooLarge, Text: "Request headers are too large"}
		}
	}
	return nil
}
