// Package claims tells JSON Web Tokens of one meaning from those that readers understand differently.
package claims

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Unambiguous reports whether the header and the claims of a token are JSON without repeated members. Of a repeated one, this
// process would take the last value, and the issuer or a proxy may have checked the first.
func Unambiguous(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || !jsontext.Value(text).IsValid() {
			return false
		}
	}
	return true
}
