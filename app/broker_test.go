package app

import (
	"net"
	"strings"
	"testing"
)

func TestOnlyAnAddressInUseIsSaidToBe(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // nothing is left to do with it
	for addr, inUse := range map[string]bool{
		taken.Addr().String(): true,
		"192.0.2.1:0":         false, // an address of documentation, which no machine has
		"nonsense":            false,
	} {
		listener, err := listen(t.Context(), addr, "move")
		if err == nil {
			_ = listener.Close() // it is not wanted
			t.Errorf("listen on %s: no error", addr)
			continue
		}
		if got := strings.HasSuffix(err.Error(), ": the address is in use: move"); got != inUse {
			t.Errorf("listen on %s: %v; it says that the address is in use: %v, want %v", addr, err, got, inUse)
		}
	}
}
