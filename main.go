// Command postburner runs background jobs from beanstalkd. Handlers are the programs
// that postburner.yml names; a binary with Go handlers calls app.Main with its own registry.
package main

import "github.com/postburner/postburner/app"

func main() { app.Main(nil) }
