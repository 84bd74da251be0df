package token_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/turn/token"
)

func Example() {
	now := time.Unix(1_790_000_000, 0)
	// Secrets have at least 32 bytes: openssl rand -base64 32
	const older, newer = "2XH/q0gZ8Fh0u3Eo1n4cWv7yR5tKpLbA=", "Zs9dPfG1kLm3nBvC5xXzQwErTyUiOpA7="
	minted, err := token.Mint(newer, token.Claims{
		SessionID: "harbor-s19", ToolUseID: "tu_91a", CallID: "0f3e/1/tool-use/0", IssuedAt: now, Expires: now.Add(24 * time.Hour),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	doors, err := token.NewVerifier(newer, older)
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := doors.Verify(minted, now.Add(time.Minute))
	fmt.Println(claims.SessionID, claims.ToolUseID, err)
	_, err = doors.Verify(minted, now.Add(48*time.Hour))
	fmt.Println(err)
	_, err = token.NewVerifier("too short")
	fmt.Println(err)
	// Output:
	// harbor-s19 tu_91a <nil>
	// token: Token has expired
	// secret 1: token: secret is too short: want at least 32 bytes
}
