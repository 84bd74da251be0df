package peerwire

import "strings"

// MaxHeader is the largest length of a header with a token, in bytes.
const MaxHeader = 8 << 10

// Bearer returns the token of the values of the header Authorization. The scheme is matched case-insensitively, and the
// token may contain spaces. There is none if there is not exactly one value, if it is longer than MaxHeader, or if nothing
// follows the scheme.
func Bearer(values []string) (token string, ok bool) {
	if len(values) != 1 || len(values[0]) > MaxHeader {
		return "", false
	}
	const scheme = "bearer"
	header := Trim(values[0])
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	rest := header[len(scheme):]
	token = Trim(rest)
	return token, token != "" && len(token) < len(rest)
}
