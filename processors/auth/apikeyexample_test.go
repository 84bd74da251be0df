package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/turntable-streams/turntable/processors/auth"
)

// A key is made, its line is stored, and a request with the key is authenticated.
func Example_apiKey() {
	key, line, err := auth.NewAPIKey(auth.APIKeyHolder{
		User: "mira", Sessions: []string{"{user}:*"}, Rights: auth.Read | auth.Write,
	})
	if err != nil {
		panic(err)
	}
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		panic(err)
	}

	keys, err := auth.OpenAPIKeys(file, auth.APIKeyConfig{})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/api/chat", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	caller, err := keys.Authenticate(r) // a door calls it: auth.Door{Authenticate: keys.Authenticate}
	fmt.Println(caller.UserID, caller.Rights, caller.Allowed("mira:1"), caller.Allowed("otto:1"), err)
	// Output: mira read,write true false <nil>
}
