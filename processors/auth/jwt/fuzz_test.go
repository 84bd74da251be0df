package jwt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKeySet checks that every key that is accepted is a public key for signatures.
func FuzzKeySet(f *testing.F) {
	f.Add(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}`)
	f.Add(`{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"RSA","n":"AQAB","e":"AQAB","x5u":"http://127.0.0.1/"}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		set, err := parseKeySet([]byte(content))
		if err != nil {
			require.ErrorIs(t, err, ErrKeys)
			return
		}
		require.NotEmpty(t, set.keys)
		for _, k := range set.keys {
			for _, alg := range []string{"none", "HS256", "HS384", "HS512", ""} {
				require.False(t, fits(k, alg))
			}
		}
	})
}
