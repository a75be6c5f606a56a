// Command worker is the shop's worker: `worker work` runs it, `worker check` shows its
// configuration, and whatever else postburner can do, it can.
package main

import (
	"github.com/postburner/postburner/app"
	"github.com/postburner/postburner/examples/shop"
)

func main() { app.Main(shop.Handlers()) }
