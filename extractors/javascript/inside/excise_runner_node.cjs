/* Files that tape or node:test run are the programs themselves: nothing is to be started. */
'use strict'

module.exports = () => {}
