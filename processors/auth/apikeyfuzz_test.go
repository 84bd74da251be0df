package auth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzAPIKeyFile checks that every accepted key can do something and nothing by accident, and that errors quote no line.
func FuzzAPIKeyFile(f *testing.F) {
	_, line, err := NewAPIKey(APIKeyHolder{User: "mira", Sessions: []string{"{user}:*"}, Rights: Read})
	require.NoError(f, err)
	f.Add(line)
	f.Add("# a comment\n\n" + line + "\r\n" + strings.Replace(line, `"id":"`, `"id":"0`, 1))
	f.Add(`{"id":"abcd","hash":"sha256:","sessions":["*"],"rights":["all"]}`)
	f.Fuzz(func(t *testing.T, content string) {
		keys, err := parseKeys([]byte(content), nil)
		if err != nil {
			require.ErrorIs(t, err, ErrAPIKeys)
			require.Less(t, len(err.Error()), 250)
			return
		}
		for id, k := range keys {
			require.True(t, validKeyID(id))
			require.Equal(t, id, k.id)
			require.NotZero(t, k.rights)
			require.False(t, k.opens(""))
			require.True(t, k.user != "" || !k.sessions.OfUser())
		}
		again, err := parseKeys([]byte(content), keys)
		require.NoError(t, err)
		for id, k := range keys {
			require.Same(t, k, again[id])
		}
	})
}

func FuzzAPIKey(f *testing.F) {
	key, _, err := NewAPIKey(APIKeyHolder{Sessions: []string{"*"}, Rights: Read})
	require.NoError(f, err)
	f.Add(key)
	f.Add("tt__")
	f.Fuzz(func(t *testing.T, token string) {
		id, secret, ok := splitKey(token)
		if ok {
			require.Equal(t, token, APIKeyPrefix+id+"_"+secret)
			require.True(t, validKeyID(id))
		}
	})
}
