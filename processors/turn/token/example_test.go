package token_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/turn/token"
)

func Example() {
	now := time.Unix(1_790_000_000, 0)
	minted, err := token.Mint("new-secret", token.Claims{
		SessionID: "harbor-s19", ToolUseID: "tu_91a", IssuedAt: now, Expires: now.Add(24 * time.Hour),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	doors := token.NewVerifier("new-secret", "old-secret")
	claims, err := doors.Verify(minted, now.Add(time.Minute))
	fmt.Println(claims.SessionID, claims.ToolUseID, err)
	_, err = doors.Verify(minted, now.Add(48*time.Hour))
	fmt.Println(err)
	_, err = token.NewVerifier("another").Verify(minted, now)
	fmt.Println(err)
	// Output:
	// harbor-s19 tu_91a <nil>
	// token: Token has expired
	// token: Bad token signature
}
