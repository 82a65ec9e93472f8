"""What a `EffectSize` is made of: the law of an estimate, how often levels are right, and words.

Imports what `_inference` imports.
"""
